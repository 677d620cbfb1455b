"""What is wrong with Parquet files and tables that hold Variants."""
