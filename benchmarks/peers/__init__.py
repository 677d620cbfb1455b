"""One program a system, each run by the interpreter of its own environment; they share only what `serve` says."""
