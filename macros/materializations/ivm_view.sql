{#-
  Keep a view exactly equal to its query by processing only what changed.

  The work is done by the adapter's methods, in one transaction a refresh; what changed in the sources is captured before
  that, in a short transaction of its own. Where a hook has already written inside the transaction, the capture happens
  inside it too, because that hook may have written a source.

  `--empty` and `--sample` compile a model over part of its rows: such a run never touches maintained state.

  Returns: what users query, a view.
-#}
{% materialization ivm_view, adapter='openivm', supported_languages=['sql'] %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='view') -%}

  {%- do adapter.ivm_check(context) -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {%- if adapter.ivm_is_limited_run() -%}
  {%- elif ivm_has_hooks_inside(pre_hooks) -%}
    {%- do adapter.ivm_lock(context) -%}
  {%- else -%}
    {%- do ivm_prepare_view(inside=false) -%}
  {%- endif -%}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- if adapter.ivm_is_limited_run() -%}
    {%- do ivm_validate_view(target, existing) -%}
  {%- else -%}
    {%- if ivm_has_hooks_inside(pre_hooks) -%}
      {%- do ivm_prepare_view(inside=true) -%}
    {%- endif -%}
    {%- do ivm_refresh_view(target, existing) -%}
  {%- endif -%}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {%- do adapter.commit() -%}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
