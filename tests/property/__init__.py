"""A differential fuzzer: random schemas, views and batches, every refresh compared with a recompute."""
