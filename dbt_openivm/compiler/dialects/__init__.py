"""Other engines than DuckDB: their SQL is read into the compiler's notation, and what the compiler makes is written in
theirs.

The compiler's notation is DuckDB's syntax. For another engine it is only that, a way to write trees down: no DuckDB
evaluates it, and every expression means what it means on the engine.
"""
