{%- macro ivm_index_state(step) -%}
{#- Index a state by its keys, as ivm_same_keys compares them.

    Arguments (attributes of step):
        target: the state table
        columns: the keys
-#}
{{ return(adapter.dispatch('ivm_index_state', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro default__ivm_index_state(step) -%}
CREATE INDEX ON {{ step.target }} (hash_record_extended(ROW({{ step.columns | join(', ') }}), 0))
{%- endmacro -%}
