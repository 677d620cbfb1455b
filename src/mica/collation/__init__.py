"""Collations of strings: their names, and later who compares."""
