"""The Spark engine: sessions, catalogs, plans, jobs, types, and when Spark's own Parquet reader is used."""
