"""The places where tasks run: threads of this process (`local`) or Spark (`spark`). Neither knows a format."""
