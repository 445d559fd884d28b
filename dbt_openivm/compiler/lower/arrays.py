"""``ARRAY(query)`` as a scalar subquery: the list of the query's only column, empty where it has no row."""

from __future__ import annotations

from sqlglot import exp

SOURCE = "openivm_array"
VALUE = "openivm_value"
ORDER = "openivm_order"


def plain_arrays(tree: exp.Expr) -> exp.Expr:
    """`tree` with each ``ARRAY(query)`` written so; one that cannot be stays, and is refused further on."""
    for node in reversed([found for found in tree.find_all(exp.Array) if is_array_query(found)]):
        made = listed(node.expressions[0].copy())
        if made is not None:
            made.meta.update(node.meta)
            node.replace(made)
    return tree


def is_array_query(node: exp.Array) -> bool:
    """Whether it is ``ARRAY(SELECT ..)``, and no list of one value: ``[(SELECT ..)]``."""
    written_as_list = "value_constructor" in node.args
    return (
        not written_as_list and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query | exp.Values)
    )


def listed(query: exp.Expr) -> exp.Subquery | None:
    """``(SELECT coalesce(list(value ORDER BY ..), []) FROM (query) AS ..(value, ..))``.

    What is ordered by stands beside the value, as in DuckDB itself: a name means a column of FROM there before it means
    the value's alias, and ALL means all columns of FROM. LIMIT and DISTINCT know only the alias; which of the two a
    name is cannot be seen here.
    """
    while isinstance(query, exp.Subquery) and query.is_wrapper:
        query = query.this
    clause = query.args.get("order")
    # DISTINCT ON takes the first rows of this order, LIMIT too
    limited = any(query.args.get(part) for part in ("limit", "offset", "distinct"))
    names = [VALUE]
    orders = []
    for part in clause.expressions if clause is not None else ():
        name = VALUE
        if not is_value(query, part.this):
            fixed = not isinstance(query, exp.Select) or query.args.get("distinct")
            if fixed or is_everything(part.this) or part.find(exp.Columns) or (limited and is_alias(query, part)):
                return None
            name = f"{ORDER}_{len(names)}"
            names.append(name)
            query.append("expressions", part.this.copy())
            part.set("this", exp.Literal.number(len(names)))
        orders.append(exp.Ordered(**{**part.copy().args, "this": exp.column(name)}))
    if clause is not None and not limited:
        clause.pop()
    alias = exp.TableAlias(this=exp.to_identifier(SOURCE), columns=[exp.to_identifier(name) for name in names])
    value = exp.column(VALUE)
    ordered = exp.Order(this=value, expressions=orders) if orders else value
    values = exp.Coalesce(this=exp.ArrayAgg(this=ordered), expressions=[exp.Array()])
    if isinstance(query, exp.Values):
        query.set("alias", alias)
    else:
        query = exp.Subquery(this=query, alias=alias)
    return exp.Subquery(this=exp.select(values).from_(query))


def is_value(query: exp.Expr, key: exp.Expr) -> bool:
    """Whether what is ordered by is the column itself: its number, or its name where nothing else has one."""
    if isinstance(key, exp.Literal):
        return key == exp.Literal.number(1)
    if isinstance(query, exp.Select) and not query.args.get("distinct"):
        return False
    return isinstance(key, exp.Column) and not is_alias(query, key) and key.name.lower() in output_names(query)


def is_everything(value: exp.Expr) -> bool:
    """ALL, which DuckDB writes as a star in the text of a view."""
    if isinstance(value, exp.Columns):
        return isinstance(value.this, exp.Star) and not any(value.this.args.values())
    return isinstance(value, exp.Var) and value.name.upper() == "ALL"


def is_alias(query: exp.Expr, key: exp.Expr) -> bool:
    """Whether `key` reads a name that a SELECT gives to its column, and that columns of FROM may have too."""
    if not isinstance(query, exp.Select):
        return False
    renamed = {
        shown.alias.lower()
        for shown in query.selects
        if isinstance(shown, exp.Alias) and shown.this.name.lower() != shown.alias.lower()
    }
    return any(column.name.lower() in renamed for column in key.find_all(exp.Column))


def output_names(query: exp.Expr) -> set[str]:
    return {shown.output_name.lower() for shown in query.selects} if isinstance(query, exp.Query) else set()
