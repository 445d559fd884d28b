"""TPC-H and TPC-DS as a proof: every query as a view, under inserts, updates and deletes on every table.

Data and queries come from DuckDB's extensions `tpch` and `tpcds`, fetched from PyPI when they are needed (`tools.py`);
nothing of them is part of this repository. The figures are no TPC results: neither data, nor changes, nor
rules of measuring are those of the benchmarks.
"""
