"""The dbt adapter: thin, over `dbt_openivm.engine`. The only part of the package that imports dbt."""
