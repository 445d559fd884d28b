select flight_date, origin as airport, 'departure' as movement, dep_delay as delay, carrier
from {{ ref('flights_clean') }}
union all
select flight_date, destination as airport, 'arrival' as movement, arr_delay as delay, carrier
from {{ ref('flights_clean') }}
