"""Constant rows never change: the delta is empty, old and new are the rows themselves."""

from __future__ import annotations

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Constant
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form, Forms


def delta(_operator: Constant, _context: Context, _forms: Forms) -> list[Fragment]:
    return []


def whole(operator: Constant, context: Context, _form: Form) -> list[Fragment]:
    if not operator.names:
        return [Fragment((), (), {}) for _ in operator.rows]
    alias = context.alias("constants")
    tuples = [exp.Tuple(expressions=[value.copy() for value in row]) for row in operator.rows]
    names = [sql.identifier(name) for name in operator.names]
    values = exp.Values(expressions=tuples, alias=exp.TableAlias(this=sql.identifier(alias), columns=names))
    return [Fragment((values,), (), {name: sql.qualified(alias, name) for name in operator.names})]
