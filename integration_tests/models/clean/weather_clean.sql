select
    origin,
    time_hour as observed_hour,
    round((temp - 32) / 1.8, 1) as celsius,
    wind_speed,
    coalesce(precip, 0) as precipitation,
    visib as visibility,
    case
        when visib < 2 then 'fog'
        when precip > 0 and temp <= 33 then 'snow'
        when precip > 0 then 'rain'
        when wind_speed > 20 then 'wind'
        else 'fair'
    end as conditions
from {{ source('raw', 'weather') }}
where wind_speed < 200 or wind_speed is null
