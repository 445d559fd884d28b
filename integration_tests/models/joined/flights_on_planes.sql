select
    f.flight_date,
    f.flight_number,
    a.name as airline,
    f.origin,
    f.destination,
    f.arr_delay,
    f.distance,
    f.miles_per_hour,
    p.tailnum,
    p.manufacturer,
    p.model,
    p.seats,
    year(f.flight_date) - p.built as age
from {{ ref('flights_clean') }} as f
inner join {{ ref('planes_clean') }} as p on f.tailnum = p.tailnum
inner join {{ source('raw', 'airlines') }} as a on f.carrier = a.carrier
