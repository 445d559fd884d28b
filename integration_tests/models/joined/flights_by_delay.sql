select f.flight_date, f.carrier, f.origin, f.destination, f.arr_delay, b.band
from {{ ref('flights_clean') }} as f
inner join {{ ref('delay_bands') }} as b on f.arr_delay >= b.from_minutes and f.arr_delay < b.below_minutes
