"""The Spark engine: sessions, jobs, types, and when Spark's own Parquet reader is used."""
