select distinct f.carrier, f.origin, f.destination, d.name as destination_name
from {{ ref('flights_clean') }} as f
inner join {{ source('raw', 'airports') }} as d on f.destination = d.faa
