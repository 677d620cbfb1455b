"""File statistics: which are collected, how they are written to the log and read from it."""
