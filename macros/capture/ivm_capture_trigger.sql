{# One AFTER trigger: the rows a statement added (+1) and removed (-1) go into the change log, not yet numbered. #}
{% macro ivm_capture_trigger(step) %}{{ return(adapter.dispatch('ivm_capture_trigger', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_trigger(step) %}
CREATE TRIGGER {{ step.trigger }} AFTER {{ step.event }} ON {{ step.table }}
REFERENCING {% if step.added %}NEW TABLE AS openivm_added{% endif %}{% if step.removed %} OLD TABLE AS openivm_removed{% endif +%}
FOR EACH STATEMENT
INSERT INTO {{ step.log }} ({{ (step.columns + ["openivm_multiplicity", "openivm_timestamp"]) | join(", ") }})
{% if step.added %}
SELECT {{ (step.columns + ["1", step.timestamp]) | join(", ") }} FROM openivm_added
{% endif %}
{% if step.added and step.removed %}
UNION ALL
{% endif %}
{% if step.removed %}
SELECT {{ (step.columns + ["-1", step.timestamp]) | join(", ") }} FROM openivm_removed
{% endif %}
{% endmacro %}
