select r.origin, r.destination_name, b.band, count(*) as flights
from {{ ref('flights_by_delay') }} as b
inner join {{ ref('routes') }} as r
    on b.carrier = r.carrier and b.origin = r.origin and b.destination = r.destination
group by all
having count(*) >= 10
