select
    c.carrier,
    a.name as airline,
    date_trunc('month', c.flight_date) as month,
    sum(c.flights) as flights,
    sum(c.late_flights) as late_flights,
    sum(c.minutes_late) / sum(c.flights) as mean_delay,
    max(c.worst_arrival) as worst_arrival
from {{ ref('carrier_daily') }} as c
inner join {{ source('raw', 'airlines') }} as a on c.carrier = a.carrier
group by 1, 2, 3
having sum(c.flights) > 0
