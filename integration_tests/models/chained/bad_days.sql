select d.flight_date, m.airline, d.flights, d.late_flights, m.late_flights as late_in_month, m.flights as in_month
from {{ ref('carrier_daily') }} as d
inner join {{ ref('carrier_monthly') }} as m
    on d.carrier = m.carrier and date_trunc('month', d.flight_date) = m.month
-- a share of late flights at least twice that of the month, and more than a stray one
where d.late_flights * m.flights >= 2 * m.late_flights * d.flights and d.late_flights >= 10
