with named as (
    select
        tailnum,
        year as built,
        case
            when manufacturer like 'AIRBUS%' then 'AIRBUS'
            when manufacturer like 'MCDONNELL DOUGLAS%' then 'MCDONNELL DOUGLAS'
            else manufacturer
        end as manufacturer,
        model,
        seats
    from {{ source('raw', 'planes') }}
)

select tailnum, built, manufacturer, model, seats
from named
where seats > 0
