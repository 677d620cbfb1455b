"""`python -m mica`: the command line, where `mica` itself is not on the path."""

from mica.cli.__main__ import main

if __name__ == "__main__":
    main()
