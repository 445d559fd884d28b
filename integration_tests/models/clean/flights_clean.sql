select
    make_date(year, month, day) as flight_date,
    carrier,
    flight as flight_number,
    tailnum,
    origin,
    dest as destination,
    time_hour as scheduled_hour,
    dep_delay,
    arr_delay,
    air_time,
    distance,
    round(distance * 60.0 / air_time, 1) as miles_per_hour
from {{ source('raw', 'flights') }}
where arr_delay is not null and air_time > 0
