"""A failing case as a script that needs nothing but the package: for the bug report and the debugger."""

from __future__ import annotations

from dbt_openivm.names import quote
from tests.property.case import Case, Step, ViewDef, text
from tests.property.checks import Failure

HEADER = '''"""Found by tests/property, seed {seed}: {check} of view {view}.

{detail}
"""

import duckdb

from dbt_openivm import IvmEngine

con = duckdb.connect(config={{"threads": 1}})


def run(sql):
    try:
        con.execute(sql)
    except duckdb.Error as error:
        print("--", sql[:80], "->", str(error).splitlines()[0])


def engine():
    return IvmEngine(con, capture={capture!r}, captures={captures!r})


def compare(view, sql):
    try:
        con.execute("CREATE OR REPLACE TEMP TABLE truth AS " + sql)
    except duckdb.Error as error:
        print(view, "the query itself fails:", str(error).splitlines()[0])
        return
    for label, left, right in (("surplus", view, "truth"), ("missing", "truth", view)):
        rows = con.execute(f"FROM {{left}} EXCEPT ALL FROM {{right}}").fetchall()
        if rows:
            print("  WRONG ROWS", view, label, rows[:10])
    types = [[row[:2] for row in con.execute("DESCRIBE " + name).fetchall()] for name in (view, "truth")]
    if types[0] != types[1]:
        print("  WRONG COLUMNS", view, types)


def refresh(view, sql):
    print("refresh", ivm.refresh(view))
    compare(view, sql)
    again = ivm.refresh(view)
    if again.strategy != "none":
        print("  SECOND REFRESH", again)

'''


def script(case: Case, failure: Failure) -> str:
    """A runnable Python program that shows the failure."""
    detail = failure.detail.replace("\\", "/").replace('"""', "'''")
    head = HEADER.format(
        seed=case.seed,
        check=failure.check,
        view=failure.view,
        detail=detail[:3000],
        capture=case.capture,
        captures=case.captures,
    )
    lines = [f"run({_literal(text(statement))})" for statement in case.setup]
    lines += ["", "ivm = engine()"]
    for view in case.views:
        lines += _create(view)
    for number, step in enumerate(case.steps):
        lines += ["", f"# step {number}", *_step(case, step)]
    return head + "\n".join(lines) + "\n"


def _create(view: ViewDef) -> list[str]:
    sql = _literal(view.sql)
    if view.kind == "plain":
        return ["", f"run({_literal(f'CREATE VIEW {quote(view.name)} AS {view.sql}')})"]
    return [
        "",
        f"sql_{_slug(view)} = {sql}",
        f"print(ivm.create_view({quote(view.name)!r}, sql_{_slug(view)}, {view.apply_strategy!r}))",
        f"compare({quote(view.name)!r}, sql_{_slug(view)})",
    ]


def _step(case: Case, step: Step) -> list[str]:
    lines = [f"run({_literal(text(statement))})" for statement in step.statements]
    if any(text(statement) == "BEGIN" for statement in step.statements):
        lines.append('run("ROLLBACK")')
    if step.restart:
        lines.append("ivm = engine()")
    for name in step.refresh:
        view = case.view(name)
        lines.append(f"refresh({quote(name)!r}, sql_{_slug(view)})")
    return lines


def _slug(view: ViewDef) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in view.name)


def _literal(sql: str) -> str:
    return repr(sql)
