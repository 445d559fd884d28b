select
    flight_date,
    carrier,
    count(*) as flights,
    count(*) filter (where arr_delay >= 15) as late_flights,
    sum(arr_delay) as minutes_late,
    avg(arr_delay) as mean_delay,
    stddev_samp(arr_delay) as spread_of_delay,
    min(arr_delay) as best_arrival,
    max(arr_delay) as worst_arrival
from {{ ref('flights_clean') }}
group by all
