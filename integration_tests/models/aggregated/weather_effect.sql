select
    airport,
    conditions,
    count(*) as flights,
    avg(dep_delay) as mean_delay,
    stddev_pop(dep_delay) as spread_of_delay,
    min(celsius) as coldest,
    max(celsius) as warmest
from {{ ref('flights_in_weather') }}
group by airport, conditions
having count(*) >= 25
