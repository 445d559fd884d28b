{%- macro ivm_same(left, right) -%}
{#- Whether two values are equal, where NULL is equal to NULL.

    Arguments: two expressions of one type
-#}
{{ return(adapter.dispatch('ivm_same', 'dbt')(left, right)) }}
{%- endmacro -%}

{%- macro openivm__ivm_same(left, right) -%}
{{ left }} IS NOT DISTINCT FROM {{ right }}
{%- endmacro -%}

{#- Unlike IS NOT DISTINCT FROM, an equality that joins can hash and indexes can find. -#}
{%- macro postgres__ivm_same(left, right) -%}
ARRAY[{{ left }}] = ARRAY[{{ right }}]
{%- endmacro -%}
