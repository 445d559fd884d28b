select
    count(*) as flights,
    sum(distance) as miles,
    avg(arr_delay) as mean_delay,
    min(flight_date) as first_day,
    max(flight_date) as last_day,
    max(arr_delay) as worst_arrival
from {{ ref('flights_clean') }}
