"""What the first row of a table does not need, made on first use.

Modules of the standard library: `late.difflib` is imported when it is first named. Together they take a tenth of the
time to that row: `concurrent.futures` brings `logging`, `urllib.parse` `ipaddress`, `hashlib` OpenSSL. Regular
expressions: `late.pattern` is `re.compile`, which takes a millisecond for the long ones.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import difflib
    import hashlib
    from concurrent import futures
    from re import compile as pattern
    from urllib import parse as urls
else:

    class pattern:  # noqa: N801 - called like the function that it is
        """`re.compile`."""

        def __init__(self, text: str, flags: int = 0) -> None:
            self._given = text, flags

        def __getattr__(self, name: str) -> Any:
            found = self.__dict__[name] = getattr(re.compile(*self._given), name)
            return found


__all__ = ["difflib", "futures", "hashlib", "pattern", "urls"]

_ELSEWHERE = {"futures": "concurrent.futures", "urls": "urllib.parse"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    globals()[name] = module = import_module(_ELSEWHERE.get(name, name))
    return module
