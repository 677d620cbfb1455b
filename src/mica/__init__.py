"""Delta tables with shredded VARIANT columns and collated strings, for PySpark."""
