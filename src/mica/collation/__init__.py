"""Collations of strings: their names, and comparison without Spark."""
