"""Scans behind the interfaces of other libraries: pyarrow's Dataset, polars' lazy frames."""
