{%- macro ivm_same_keys(held, other, keys, turned=false) -%}
{#- Whether a row of a state has the keys of another row.

    Arguments:
        held: alias of the state
        other: alias of the other rows
        keys: pairs (column of the state, column of the others)
        turned: whether the others stand on the left
-#}
{{ return(adapter.dispatch('ivm_same_keys', 'dbt')(held, other, keys, turned)) }}
{%- endmacro -%}

{%- macro openivm__ivm_same_keys(held, other, keys, turned) -%}
{% for column, key in keys %}{{ ' AND ' if not loop.first }}{% if turned %}{{ ivm_same(other ~ '.' ~ key, held ~ '.' ~ column) }}{% else %}{{ ivm_same(held ~ '.' ~ column, other ~ '.' ~ key) }}{% endif %}{% endfor %}
{%- endmacro -%}

{#- The hashes are what the index of ivm_index_state holds: keys may be too long for an index themselves. -#}
{%- macro postgres__ivm_same_keys(held, other, keys, _turned) -%}
hash_record_extended(ROW({% for column, _ in keys %}{{ ', ' if not loop.first }}{{ held }}.{{ column }}{% endfor %}), 0) = hash_record_extended(ROW({% for _, key in keys %}{{ ', ' if not loop.first }}{{ other }}.{{ key }}{% endfor %}), 0)
{%- for column, key in keys %} AND {{ ivm_same(held ~ '.' ~ column, other ~ '.' ~ key) }}{% endfor %}
{%- endmacro -%}
