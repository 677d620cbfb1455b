"""`python -m mica.cli`."""

from mica.cli.app import main

main()
