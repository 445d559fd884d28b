select
    f.flight_date,
    f.carrier,
    f.origin,
    o.name as airport,
    f.destination,
    f.dep_delay,
    w.conditions,
    w.celsius,
    w.visibility
from {{ ref('flights_clean') }} as f
inner join {{ ref('weather_clean') }} as w on f.origin = w.origin and f.scheduled_hour = w.observed_hour
inner join {{ source('raw', 'airports') }} as o on f.origin = o.faa
