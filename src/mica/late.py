"""Modules of the standard library that the first row of a table does not need: `late.difflib` is imported on first use.

Together they take a tenth of the time to that row: `concurrent.futures` brings `logging`, `urllib.parse` `ipaddress`,
`hashlib` OpenSSL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import difflib
    import hashlib
    from concurrent import futures
    from urllib import parse as urls

__all__ = ["difflib", "futures", "hashlib", "urls"]

_ELSEWHERE = {"futures": "concurrent.futures", "urls": "urllib.parse"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    globals()[name] = module = import_module(_ELSEWHERE.get(name, name))
    return module
