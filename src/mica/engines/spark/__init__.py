"""Spark as the engine: sessions, jobs, types, and when Spark's own Parquet reader is taken."""
