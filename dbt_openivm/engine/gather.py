"""Look up in DuckDB what the compiler wants to know of a query: `gather(..) -> CompileFacts`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

import sqlglot

from dbt_openivm.compiler.facts import BASE, SQL_VIEW, VISIBLE, Column, CompileFacts, Macro, Relation
from dbt_openivm.compiler.lower import reading
from dbt_openivm.compiler.lower.references import FILE_READERS, REMEMBERED, References, named_by, named_in
from dbt_openivm.engine import macros
from dbt_openivm.engine.macros import Macros
from dbt_openivm.engine.session import Row, Session
from dbt_openivm.errors import QueryError
from dbt_openivm.names import PREFIX, RelationName, literal, split_name

IsView = Callable[[RelationName, str], bool]
"""(name, text of its SQL) -> whether the catalog maintains this view."""


@dataclass(frozen=True)
class Functions:
    """DuckDB's functions, by what matters to the compiler."""

    internal: frozenset[str]
    volatile: frozenset[str]
    aggregates: frozenset[str]
    macros: Macros


NO_FUNCTIONS = Functions(frozenset(), frozenset(), frozenset(), {})

# Two statements: their UNION ALL takes twice as long as both.
COLUMNS = (
    "SELECT database_name, schema_name, table_name, column_name, data_type FROM duckdb_columns() "
    "WHERE lower(table_name) IN ({names}) AND NOT internal"
)
VIEWS = (
    "SELECT database_name, schema_name, view_name, sql FROM duckdb_views() "
    "WHERE lower(view_name) IN ({names}) AND NOT internal"
)

_BUILT_IN: dict[str, Functions] = {}
"""Functions by DuckDB version: listing them takes longer than a small refresh."""


ZONED = re.compile(
    r"time zone|timestamptz|timetz|timezone|\b(now|today|ago|get_current_\w+|transaction_timestamp)\s*\("
    r"|\bcurrent_(date|time|local)|\blocaltime",
    re.IGNORECASE,
)

TEMPORARY = ("temp", "main")
"""Where DuckDB looks first for an unqualified name."""


@dataclass(frozen=True)
class Environment:
    """The connection as names are resolved in it."""

    version: str
    search_path: tuple[tuple[str, str], ...]
    zone: str
    settings: tuple[str, ...]


def environment(session: Session) -> Environment:
    [(version, database, schema, listed, *settings)] = session.execute(
        "SELECT version(), current_database(), current_schema(), current_setting('search_path'), "
        "current_setting('TimeZone'), current_setting('integer_division'), current_setting('default_collation'), "
        "current_setting('default_order'), current_setting('default_null_order')"
    )
    path = [TEMPORARY, (database, schema)]
    for entry in filter(None, str(listed).split(",")):
        parts = split_name(entry.strip())
        path.append((parts[0], parts[1]) if len(parts) == 2 else (database, parts[0]))
    zone, division, collation, order, null_order = settings
    others = (
        f"integer_division = {division}", f"default_collation = {collation}",
        f"default_order = {order}", f"default_null_order = {null_order}",
    )  # fmt: skip
    return Environment(version, tuple(dict.fromkeys([*path, (database, "main")])), f"TimeZone = {zone}", others)


def settings_of(
    place: Environment, query: str, relations: Iterable[Relation], defined: Iterable[Macro]
) -> tuple[str, ...]:
    """The settings that the query may depend on: the time zone only where it, or what it reads, has one."""
    texts = [query, *(macro.body for macro in defined)]
    for relation in relations:
        texts += [relation.definition or "", *(column.type for column in relation.columns)]
    return (place.zone, *place.settings) if any(map(ZONED.search, texts)) else place.settings


def databases(session: Session) -> frozenset[str]:
    return frozenset(row[0].lower() for row in session.execute("SELECT database_name FROM duckdb_databases()"))


def built_in(session: Session, version: str) -> Functions:
    """DuckDB's own functions, listed once a process."""
    if version not in _BUILT_IN:
        rows = session.execute(
            "SELECT lower(function_name), function_type, stability FROM duckdb_functions() WHERE internal"
        )
        _BUILT_IN[version] = functions(rows, (row[0] for row in rows), {})
    return _BUILT_IN[version]


def list_functions(session: Session, condition: str) -> Functions:
    rows = session.execute(
        f"SELECT lower(function_name), function_type, stability, internal, {macros.COLUMNS} "
        f"FROM duckdb_functions() WHERE {condition}"
    )
    mine = [row for row in rows if row[1] in ("macro", "table_macro") and not row[3] and row[7]]
    return functions(rows, (row[0] for row in rows if row[3]), macros.macros_of((*row[:2], *row[4:]) for row in mine))


def functions(rows: Sequence[Row], internal: Iterable[str], own: Macros) -> Functions:
    """What DuckDB's rows (name, kind, stability, ..) say of functions, put right."""
    return Functions(
        frozenset(internal),
        frozenset(row[0] for row in rows if row[2] in ("VOLATILE", "CONSISTENT_WITHIN_QUERY")) - NOT_VOLATILE
        | VOLATILE_MACROS,
        frozenset(row[0] for row in rows if row[1] == "aggregate") | AGGREGATE_MACROS,
        own,
    )


SYNTAX = frozenset(
    [
        "case",
        "cast",
        "try_cast",
        "try",
        "coalesce",
        "extract",
        "interval",
        "map",
        "struct",
        "array",
        "row",
        "not",
        "exists",
        "if",
        "columns",
    ]
)
"""What sqlglot writes like a function, and DuckDB's parser knows by itself."""

# DuckDB ships some functions as macros, whose kind it does not tell.
VOLATILE_MACROS = frozenset({"ago", "pg_conf_load_time", "pg_postmaster_start_time"})
AGGREGATE_MACROS = frozenset(
    [
        "geomean",
        "geometric_mean",
        "wavg",
        "weighted_avg",
        "json_group_array",
        "json_group_object",
        "json_group_structure",
        "variant_group_array",
    ]
)

# DuckDB marks date functions as consistent within a query only, because they depend on the time zone. The time zone
# is part of how a query is run, as for any other model: it does not make a function volatile. And error() has no value
# that could change: DuckDB marks it so that it is not evaluated too early.
NOT_VOLATILE = frozenset(
    [
        "+",
        "-",
        "age",
        "century",
        "date_diff",
        "date_part",
        "date_sub",
        "date_trunc",
        "datediff",
        "datepart",
        "datesub",
        "datetrunc",
        "day",
        "dayname",
        "dayofmonth",
        "dayofweek",
        "dayofyear",
        "decade",
        "era",
        "error",
        "generate_series",
        "hour",
        "isodow",
        "isoyear",
        "julian",
        "last_day",
        "make_timestamptz",
        "microsecond",
        "millennium",
        "millisecond",
        "minute",
        "month",
        "monthname",
        "quarter",
        "range",
        "second",
        "strftime",
        "time_bucket",
        "timezone",
        "timezone_hour",
        "timezone_minute",
        "week",
        "weekday",
        "weekofyear",
        "year",
        "yearweek",
    ]
)


@dataclass
class Gatherer:
    """Collects relations, following plain views.

    Attributes:
        asked: names looked up.
        named: names that the query, its views and its macros mention.
        names_of: name of each relation by its key.
        unnamed: texts of the select items in views that only DuckDB can name.
        has_pairs: whether some name has two parts, of which the first may be a database or a schema.
    """

    session: Session
    is_view: IsView
    relations: dict[str, Relation] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    names_of: dict[str, str] = field(default_factory=dict)
    has_pairs: bool = False
    unnamed: list[str] = field(default_factory=list)

    def follow(self, found: References, also: Iterable[str] = ()) -> None:
        """Look up the names, then the names of the views among them; `also` are looked up, but not followed."""
        pending = [found]
        others = set(also)
        while pending:
            current = pending.pop()
            self.functions |= current.functions
            names = {parts[-1].lower() for parts in current.tables}
            self.named |= names
            self.has_pairs = self.has_pairs or any(len(parts) == 2 for parts in current.tables)
            new = (names | others) - self.asked
            self.asked |= new
            views = [named_in(query) for name, query in self.look_up(new) if name in names]
            pending.extend(views)
            self.unnamed += [text for view in views for text in view.unnamed]
            self.readers(current.readers)
            others = set()

    def is_named(self, key: str) -> bool:
        """Whether the query, or a view or macro in it, names the relation; files have no catalog entry."""
        return key not in self.names_of or self.names_of[key] in self.named

    def follow_macros(self, macros: Macros) -> set[str]:
        """Look up what the bodies of the macros in use name, and the macros in those; returns which are in use."""
        done: set[str] = set()
        while used := (self.functions & macros.keys()) - done:
            done |= used
            for macro in (macro for name in sorted(used) for macro in macros[name]):
                self.follow(named_in(macro.body))
        return done

    def look_up(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Add the relations of these names in any schema; return (name, query) of the plain views."""
        listed = ", ".join(map(literal, sorted(names)))
        if not listed:
            return []
        views = {RelationName(*row[:3]): row[3] for row in self.session.execute(VIEWS.format(names=listed))}
        columns: dict[RelationName, list[Column]] = {}
        for database, schema, name, column, type_ in self.session.execute(COLUMNS.format(names=listed)):
            columns.setdefault(RelationName(database, schema, name), []).append(Column(column, type_))
        queries = []
        for relation_name, listed_columns in columns.items():
            relation = self.relation(relation_name, tuple(listed_columns), views.get(relation_name))
            self.relations[relation_name.key] = relation
            self.names_of[relation_name.key] = relation_name.name.lower()
            if relation.kind == SQL_VIEW:
                queries.append((relation_name.name.lower(), relation.definition or ""))
        return queries

    def relation(self, name: RelationName, columns: tuple[Column, ...], view_sql: str | None) -> Relation:
        if view_sql is None or name.schema.lower().startswith(PREFIX):
            return Relation(name.key, name.sql, columns, BASE)
        if self.is_view(name, view_sql):
            return Relation(name.key, name.sql, columns, VISIBLE)
        definition = view_query(view_sql)
        if definition is None:
            # a view whose text the compiler cannot read is captured like a table
            return Relation(name.key, name.sql, columns, BASE)
        return Relation(name.key, name.sql, columns, SQL_VIEW, definition, (name.database, name.schema))

    def readers(self, texts: Iterable[str]) -> None:
        """Table functions that read files are bases; their text is their name."""
        for text in sorted(texts):
            if text.split("(", 1)[0].strip().lower() in FILE_READERS and text not in self.relations:
                self.relations[text] = Relation(text, text, describe(self.session, f"SELECT * FROM {text}"), BASE)


@lru_cache(maxsize=REMEMBERED)
def view_query(sql: str) -> str | None:
    """The SELECT of a CREATE VIEW statement, None if it cannot be read."""
    try:
        return reading.view_query(sql)
    except sqlglot.errors.SqlglotError:
        return None


def describe(session: Session, query: str) -> tuple[Column, ...]:
    return tuple(Column(row[0], row[1]) for row in session.execute(f"DESCRIBE {query}"))


def output_columns(session: Session, query: str, view: RelationName) -> tuple[Column, ...]:
    """Names and types of the table that CREATE TABLE AS would make of the query.

    Raises:
        QueryError: DuckDB refuses the query; its words are in the message.
    """
    text = query.strip().rstrip(";")
    try:
        columns = describe(session, text)
    except Exception as error:
        words = str(error).split("\n\nLINE ")[0]  # the line shown would be of our DESCRIBE
        raise QueryError(
            f"DuckDB refuses the query of the view {view}: {words}\nNothing was changed. Correct the query or what it "
            "reads, then run again."
        ) from error
    names = [column.name.lower() for column in columns]
    if len(set(names)) == len(names):
        return columns
    # equal names get suffixes in a table; DuckDB says which
    session.execute(f"CREATE OR REPLACE TEMPORARY TABLE openivm_shape AS SELECT * FROM (\n{text}\n) LIMIT 0")
    named = describe(session, "SELECT * FROM temp.openivm_shape")
    session.execute("DROP TABLE temp.openivm_shape")
    return named


@dataclass(frozen=True)
class Gathered:
    """Attributes:
    facts: about everything the query names.
    objects: other relations that were asked for and are there, by key.
    """

    facts: CompileFacts
    objects: Mapping[str, Relation]


def gather(session: Session, query: str, is_view: IsView, also: Iterable[str] = ()) -> Gathered:
    """Look up everything `query` names, and relations called `also` (the view itself, internal objects).

    Raises:
        QueryError: the query is no single SELECT.
    """
    place = environment(session)
    gatherer = Gatherer(session, is_view)
    try:
        found = named_by(query)
    except sqlglot.errors.SqlglotError:
        found = References(frozenset(), frozenset(), frozenset())
    known = built_in(session, place.version)
    gatherer.follow(found, {name.lower() for name in also})
    own = NO_FUNCTIONS
    unknown = gatherer.functions - known.internal - SYNTAX
    if unknown:
        # DuckDB lists functions that Python registered as internal ones
        listed = ", ".join(map(literal, sorted(unknown)))
        own = list_functions(session, f"NOT internal OR lower(function_name) IN ({listed})")
        own = replace(own, macros=macros.with_defaults(session, own.macros, gatherer.follow_macros(own.macros)))
    add_files(session, gatherer, found, place)
    relations = {key: r for key, r in gatherer.relations.items() if gatherer.is_named(key)}
    facts = CompileFacts(
        relations=relations,
        search_path=place.search_path,
        databases=databases(session) if gatherer.has_pairs else frozenset(),
        volatile_functions=known.volatile | own.volatile,
        aggregate_functions=known.aggregates | own.aggregates,
        macros=own.macros,
        settings=settings_of(place, query, relations.values(), chain.from_iterable(own.macros.values())),
        names=expression_names(session, list(dict.fromkeys([*found.unnamed, *gatherer.unnamed]))),
        old_rows=place.version.startswith("v1."),
    )
    return Gathered(facts, gatherer.relations)


def expression_names(session: Session, expressions: Sequence[str]) -> dict[str, str]:
    """What DuckDB calls the columns of unaliased expressions: its own writing of them."""
    if not expressions:
        return {}
    listed = ", ".join(f"({literal(text)})" for text in expressions)
    rows = session.execute(
        "SELECT text, CASE WHEN tree ->> 'error' = 'false' THEN json_deserialize_sql(tree) END FROM "
        f"(SELECT text, json_serialize_sql('SELECT ' || text) AS tree FROM (VALUES {listed}) AS t(text))"
    )
    return {text: written.removeprefix("SELECT ") for text, written in rows if written is not None}


def add_files(session: Session, gatherer: Gatherer, found: References, place: Environment) -> None:
    """``FROM 'data.parquet'``: a name that no catalog entry has but DuckDB can read is a file."""
    facts = CompileFacts(gatherer.relations, place.search_path)
    for parts in found.tables:
        if len(parts) == 1 and facts.resolve(parts) is None and "." in parts[0]:
            text = RelationName("", "", parts[0]).sql.split(".", 2)[-1]
            gatherer.relations[text] = Relation(text, text, describe(session, f"SELECT * FROM {text}"), BASE)
