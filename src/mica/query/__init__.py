"""Spark SQL over tables by path or name: `sql`, `register`, `enable`, `explain`."""
