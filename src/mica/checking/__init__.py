"""Checks Parquet files and tables that hold Variants, and reports violations."""
