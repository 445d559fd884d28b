select
    flight_date,
    airport,
    count(*) filter (where movement = 'departure') as departures,
    count(*) filter (where movement = 'arrival') as arrivals,
    avg(delay) as mean_delay,
    max(delay) as worst_delay
from {{ ref('airport_movements') }}
group by flight_date, airport
having count(*) >= 5
