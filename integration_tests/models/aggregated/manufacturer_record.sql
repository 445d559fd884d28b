select
    manufacturer,
    count(*) as flights,
    sum(seats) as seats_flown,
    avg(age) as mean_age,
    avg(miles_per_hour) as mean_speed,
    max(miles_per_hour) as top_speed,
    bool_or(arr_delay > 600) as ever_ten_hours_late
from {{ ref('flights_on_planes') }}
group by manufacturer
having count(*) >= 100
