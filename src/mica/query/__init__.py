"""SQL that people already have, over tables by path or name: `sql`, `register`, `enable`, `explain`."""
