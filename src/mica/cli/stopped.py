"""What Ctrl-C says and gives to the shell. Imported before all else, so it imports nothing."""

from __future__ import annotations

import sys
from typing import NoReturn

#: The exit status of a command that Ctrl-C ended, as shells have it.
STOPPED = 130


def stop() -> NoReturn:
    """Ends the process."""
    sys.stderr.write("\nstopped: nothing unfinished is in a table\n")
    sys.exit(STOPPED)
