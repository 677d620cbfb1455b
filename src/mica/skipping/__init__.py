"""Predicates: read, bound to a schema, judged over bounds and over rows."""
