"""Spark's SQL expressions over Arrow: parsed, bound to a schema, evaluated over rows."""
