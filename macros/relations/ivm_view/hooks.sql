{#-
  Whether any hook runs inside the transaction: it may write a source before the view reads it.
-#}
{% macro ivm_has_hooks_inside(hooks) %}
  {{ return(hooks | selectattr('transaction') | list | length > 0) }}
{% endmacro %}
