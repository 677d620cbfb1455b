"""Spark's SQL expressions over Arrow: read, bound to a schema, evaluated over rows."""
