"""Statistics of files: which are kept, how they are written into the log and read from it."""
