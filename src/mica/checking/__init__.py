"""What is wrong or slow in tables and files; changes none."""
