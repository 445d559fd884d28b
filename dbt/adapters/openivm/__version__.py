from dbt_openivm.__version__ import version as version
