"""Data skipping: evaluates predicates over the bounds of files, row groups and pages."""
