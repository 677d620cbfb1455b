"""Options of object stores that nobody gave.

The rule: a location that is opened without options of the connection gets those of a source that knows some, here the
running Spark session (`engines/spark/hadoop.py`). Options that are given stand alone: of two stores they may be halves.
What neither says comes from the environment, as obstore reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mica.storage.options import HADOOP, kind_of, of_connection

#: The settings whose names match a regular expression, without groups that have a name.
Source = Callable[[str], Mapping[str, str]]
_SOURCES: list[Source] = []


def ask(source: Source) -> None:
    """Lets a source say what nobody gave, from now on and once."""
    if source not in _SOURCES:
        _SOURCES.append(source)


def with_unsaid(options: Mapping[str, str] | None, scheme: str) -> Mapping[str, str] | None:
    """The options of a location, `scheme` being one of obstore's."""
    if of_connection(options):
        return options
    for source in _SOURCES:
        options = {**source(names(kind_of(scheme))), **(options or {})}
    return options


def names(kind: str) -> str:
    """A regular expression of the settings of a kind of store, as both Python and Java read it."""
    return "|".join(f"^{re.sub(r'[?]P<of>', '?:', pattern)}$" for pattern, _, _ in HADOOP[kind])
