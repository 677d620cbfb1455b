"""What an engine runs: plain functions from files or batches to batches or file facts. They know no engine."""
