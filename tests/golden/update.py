"""Write the golden files and docs/operators.md anew: ``python -m tests.golden.update``. Read the difference before you
commit it."""

from __future__ import annotations

import duckdb

from tests.golden.cases import EXPECTED, cases, schema
from tests.golden.compiled import compiled
from tests.golden.operators import PAGE, page
from tests.golden.show import show


def main() -> None:
    connection = duckdb.connect()
    for statement in schema():
        connection.execute(statement)
    wanted = set()
    for case in cases():
        text = show(case, compiled(connection, case.sql))
        wanted.add(case.path)
        case.path.parent.mkdir(parents=True, exist_ok=True)
        if not case.path.exists() or case.path.read_text(encoding="utf-8") != text:
            print(f"writes {case.title}")
            case.path.write_text(text, encoding="utf-8")
    for path in set(EXPECTED.glob("*/*.txt")) - wanted:
        print(f"removes {path.relative_to(EXPECTED)}")
        path.unlink()
    text = page(connection)
    if PAGE.read_text(encoding="utf-8") != text:
        print(f"writes {PAGE.name}")
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
