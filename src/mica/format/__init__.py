"""Spark's `format("mica")`: tables through the Python Data Source API, for DataFrames, plain SQL and streams."""
