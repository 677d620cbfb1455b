"""PySpark's methods that take the name of a table, and whom they ask first in sessions that want it.

The rule: a method is PySpark's own but for names that somebody else answers in a session that asked for it; when no
session asks any more, PySpark's classes are as they were. On Spark Connect they stay as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from mica.engines.spark.session import is_connect
from mica.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ASKED: dict[int, SparkSession] = {}
_OWN: dict[tuple[type, str], Callable[..., Any]] = {}


@dataclass(frozen=True)
class NamedCall:
    """A call of a method that takes a name: PySpark's method, the object, the name, the place of the table that it is,
    and the other arguments."""

    own: Callable[..., Any]
    on: Any
    name: str
    place: str
    given: Mapping[str, Any]

    @property
    def session(self) -> SparkSession:
        """The session of the object."""
        found: SparkSession = _session(self.on)
        return found

    def by(self, name: str) -> Any:
        """What PySpark's method gives for a name."""
        return self.own(self.on, name, **self.given)


Answer = Callable[[NamedCall], Any]


def open_doors(spark: SparkSession, place_of: Callable[[str], str | None], answers: Mapping[str, Answer]) -> None:
    """Lets `answers` (`DataFrameReader.table`, …) answer calls in a session whose name `place_of` knows."""
    if is_connect(spark):
        return
    _ASKED[id(spark)] = spark
    for door, answer in answers.items() if not _OWN else ():
        of, _, method = door.partition(".")
        made = _classes()[of]
        own = _OWN[made, method] = getattr(made, method)
        setattr(made, method, _door(own, place_of, answer))


def close_doors(spark: SparkSession) -> None:
    """Takes back what `open_doors` did for a session."""
    _ASKED.pop(id(spark), None)
    while _OWN and not _ASKED:
        (made, method), own = _OWN.popitem()
        setattr(made, method, own)


def _classes() -> Mapping[str, type]:
    from pyspark.sql.catalog import Catalog
    from pyspark.sql.classic.dataframe import DataFrame
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    every = (Catalog, DataFrame, DataFrameReader, DataFrameWriter, DataStreamReader, DataStreamWriter)
    return {one.__name__: one for one in every}


def _door(own: Callable[..., Any], place_of: Callable[[str], str | None], answer: Answer) -> Callable[..., Any]:
    signature = inspect.signature(own)
    of, named, *_ = signature.parameters

    @wraps(own)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(_session(self)) in _ASKED:
            given = signature.bind(self, *args, **kwargs).arguments
            name = str(given.pop(named)).strip("`")
            place = place_of(name)
            if place is not None:
                given.pop(of)
                return answer(NamedCall(own, self, name, place, given))
        return own(self, *args, **kwargs)

    return method


def _session(of: Any) -> Any:
    """The session of a reader, a writer, a DataFrame or a catalog; None without one."""
    names = ("_spark", "_sparkSession", "_session")
    return next((getattr(of, name) for name in names if hasattr(of, name)), None)
