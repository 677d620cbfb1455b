"""PySpark's methods that take the name of a table, and whom they ask first in sessions that want it.

The rule: a method is PySpark's own but for names that somebody else answers in a session that asked for it; when no
session asks any more, PySpark's classes are as they were. A session that Spark clones of one that asked, as it does for
`foreachBatch`, asks too. A reader or writer is left as it was before the call. On Spark Connect nothing changes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from threading import Lock
from typing import TYPE_CHECKING, Any

from mica.engines.spark.nodes import items
from mica.engines.spark.session import is_connect
from mica.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ASKED: dict[int, SparkSession] = {}
_OWN: dict[tuple[type, str], Callable[..., Any]] = {}
_LOCK = Lock()
#: The setting of a session that asked, by which its clones are known.
_MARK = "spark.mica.asked"
#: A name of one part, as Spark reads it in a text.
_ONE_PART = re.compile(r"(?s)\s*(?:`(?P<quoted>[^`]*)`|(?P<plain>\w+))\s*")
#: What readers and writers are told, by the names of Spark's setters.
_TOLD = {
    "DataFrameReader": ("_jreader", ("source", "extraOptions")),
    "DataFrameWriter": ("_jwrite", ("source", "extraOptions", "curmode", "partitioningColumns")),
}


@dataclass(frozen=True)
class Told:
    """What a reader or writer was told before the call: the mode, the format if it is not the session's default, the
    options in lower case and the partition columns."""

    mode: str = "Append"
    format: str | None = None
    options: frozenset[str] = frozenset()
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class NamedCall:
    """A call of a method that takes a name: PySpark's method, the object, the name, the place of the table that it is,
    the other arguments, and what the object was told."""

    own: Callable[..., Any]
    on: Any
    name: str
    place: str
    given: Mapping[str, Any]
    told: Told = Told()

    @property
    def rows(self) -> DataFrame:
        """The rows of a writer."""
        found: DataFrame = getattr(self.on, "_df")  # noqa: B009 - it has no public name
        return found

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
    with _LOCK:
        _forget_stopped()
        _ASKED[id(spark)] = spark
        spark.conf.set(_MARK, str(id(spark)))
        for door, answer in answers.items() if not _OWN else ():
            of, _, method = door.partition(".")
            made = _classes()[of]
            own = _OWN[made, method] = getattr(made, method)
            setattr(made, method, _door(own, place_of, answer))


def close_doors(spark: SparkSession) -> None:
    """Takes back what `open_doors` did for a session."""
    with _LOCK:
        _forget_stopped()
        if _ASKED.pop(id(spark), None) is not None:
            spark.conf.unset(_MARK)
        while _OWN and not _ASKED:
            (made, method), own = _OWN.popitem()
            setattr(made, method, own)


def _forget_stopped() -> None:
    """Sessions that were stopped ask no more: nobody may disable them."""
    for key, spark in list(_ASKED.items()):
        if getattr(spark.sparkContext, "_jsc", None) is None:
            del _ASKED[key]


def _asks(spark: Any) -> bool:
    """Whether the session asked, or was cloned of one that did."""
    if id(spark) in _ASKED:
        return True
    if spark is None or is_connect(spark):
        return False
    mark = spark.conf.get(_MARK, None)
    return mark is not None and int(mark) in _ASKED


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
        if _asks(_session(self)):
            given = signature.bind(self, *args, **kwargs).arguments
            one = _ONE_PART.fullmatch(str(given.pop(named)))
            name = "" if one is None else one["plain"] or one["quoted"]
            place = place_of(name)
            if place is not None:
                given.pop(of)
                with _as_before(self) as told:
                    return answer(NamedCall(own, self, name, place, given, told))
        return own(self, *args, **kwargs)

    return method


@contextmanager
def _as_before(of: Any) -> Iterator[Told]:
    """What a reader or writer was told, which it is told again in the end: what an answer tells it is for this call."""
    where, parts = _TOLD.get(type(of).__name__, ("", ()))
    if not where:
        yield Told()
        return
    java = getattr(of, where)
    before = {part: getattr(java, part)() for part in parts}
    source = str(before["source"])
    default = _session(of).conf.get("spark.sql.sources.default")
    columns = before.get("partitioningColumns")
    try:
        yield Told(
            mode=str(before.get("curmode", "Append")),
            format=None if source == default else source,
            options=frozenset(str(key).lower() for key in items(before["extraOptions"].keySet().toSeq())),
            partition_by=() if columns is None or columns.isEmpty() else tuple(map(str, items(columns.get()))),
        )
    finally:
        for part, value in before.items():
            getattr(java, f"{part}_$eq")(value)


def _session(of: Any) -> Any:
    """The session of a reader, a writer, a DataFrame or a catalog; None without one."""
    names = ("_spark", "_sparkSession", "_session")
    return next((getattr(of, name) for name in names if hasattr(of, name)), None)
