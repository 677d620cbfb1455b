"""The differential campaign: random documents written by each engine and read by each other."""
