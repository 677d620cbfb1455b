"""PySpark's methods that take the name of a table or an SQL text, and whom they ask first in sessions that want it.

The rule: a method is PySpark's own but for texts, and names that somebody else answers, in a session that asked for it;
when no session asks any more, PySpark's classes are as they were. A session that Spark clones of one that asked, as it
does for `foreachBatch`, asks too; one of `newSession` does not. A reader or writer is left as it was before the call.
On Spark Connect no answer knows what a reader or writer was told.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import wraps
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

from mica.engines.spark.java import java_class
from mica.engines.spark.nodes import items
from mica.engines.spark.session import is_connect
from mica.records import dataclass
from mica.schema.spelling import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ASKED: dict[int, SparkSession] = {}
_OWN: dict[tuple[type, str], Callable[..., Any]] = {}
_LOCK = Lock()
#: The setting of a session that asked, by which its clones are known.
_MARK = "spark.mica.asked"
#: A name of one part, as Spark reads it in a text.
_ONE_PART = re.compile(r"(?s)\s*(?:`(?P<quoted>[^`]*)`|(?P<plain>\w+))\s*")
_COLUMNS = ("partitioningColumns", "clusteringColumns")
#: What readers and writers are told, by the names of Spark's fields, which are private: those of the class of the Java
#: object, or of the one that it extends.
_TOLD = {
    "DataFrameReader": ("_jreader", True, ("source", "extraOptions", "userSpecifiedSchema")),
    "DataFrameWriter": ("_jwrite", True, ("source", "extraOptions", "curmode", *_COLUMNS)),
    "DataStreamReader": ("_jreader", False, ("source", "extraOptions", "userSpecifiedSchema")),
    "DataStreamWriter": ("_jwrite", False, ("source", "extraOptions", "outputMode", *_COLUMNS)),
}


@dataclass(frozen=True)
class Told:
    """What a reader or writer was told before the call: the mode (of a stream that of its output), the format if it is
    not the session's default (Spark does not keep whether that was told), the options by their names in lower case, the
    columns of partitions and of clusters, and whether there is a schema."""

    mode: str = "Append"
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    schema: bool = False


@dataclass(frozen=True)
class NamedCall:
    """A call of a method that takes a name: PySpark's method, the object, the name (of one part, or with a path, as it
    is spelled), the place of the table that it is, the other arguments, what the object was told, and the name that was
    asked for, which may have the database default before it."""

    own: Callable[..., Any]
    on: Any
    name: str
    place: str
    given: Mapping[str, Any]
    told: Told = Told()
    asked: str = ""

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

    @property
    def is_path(self) -> bool:
        """Whether the name is a path: delta.`/data/events`."""
        return "`" in self.name

    @property
    def spelled(self) -> str:
        """The name as a text has it. A temporary view may hide a name that has lost its database."""
        name = self.asked or self.name
        return self.name if self.is_path else ".".join(map(quoted, name.replace("`", "").split(".")))

    def by(self, name: str) -> Any:
        """What PySpark's method gives for a name."""
        return self.own(self.on, name, **self.given)


Answer = Callable[[NamedCall], Any]
#: The name that a table is known by, and its place, by its name in a session.
KnownAs = Callable[[Any, str], tuple[str, str] | None]
#: What answers any call of a method: it is given PySpark's own, and what that would be given.
Method = Callable[..., Any]


def open_doors(
    spark: SparkSession,
    known_as: KnownAs,
    answers: Mapping[str, Answer],
    methods: Mapping[str, Method],
) -> None:
    """Lets `answers` (`DataFrameReader.table`, …) answer calls in a session whose name `known_as` knows, and `methods`
    (`SparkSession.sql`, …) all calls, or of a method that has an answer all others."""
    with _LOCK:
        _forget_stopped()
        if asks(spark):
            return
        if not is_connect(spark):
            spark.conf.set(_MARK, str(id(spark)))
        _ASKED[id(spark)] = spark
        classes = _classes(spark)
        for door in {**methods, **answers}:
            of, _, name = door.partition(".")
            found = classes.get(of)
            if found is not None and hasattr(found, name) and (found, name) not in _OWN:  # Spark 4.1 has fewer
                made = _OWN[found, name] = getattr(found, name)
                made = _always(made, methods[door]) if door in methods else made
                setattr(found, name, _door(made, known_as, answers[door]) if door in answers else made)


def close_doors(spark: SparkSession) -> None:
    """Takes back what `open_doors` did for a session."""
    with _LOCK:
        _forget_stopped()
        if not is_connect(spark) and not _is_stopped(spark):
            spark.conf.unset(_MARK)
        for key in [key for key, one in _ASKED.items() if _is_same(one, spark)]:
            del _ASKED[key]
        while _OWN and not _ASKED:
            (made, name), own = _OWN.popitem()
            setattr(made, name, own)


def own_sql(spark: SparkSession, text: str, args: Any = None, **kwargs: Any) -> DataFrame:
    """What PySpark's own `spark.sql` gives, whether or not the session asked."""
    mro = type(spark).__mro__
    own: Any = next((_OWN[of, "sql"] for of in mro if (of, "sql") in _OWN), type(spark).sql)
    found: DataFrame = own(spark, text, args, **kwargs)
    return found


@contextmanager
def with_names(spark: SparkSession, text: str, objects: Mapping[str, Any]) -> Iterator[str]:
    """The text with what PySpark writes for its `{names}` of Python objects: a temporary view for a DataFrame, which
    is there as long as this context is, a literal for a string."""
    from pyspark.sql.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    try:
        yield formatter.format(text, **objects) if objects else text
    finally:
        formatter.clear()


def is_enabled(spark: Any) -> bool:
    """Whether the methods of the session's DataFrames ask."""
    return not is_connect(spark) and asks(spark)


def asks(spark: Any) -> bool:
    """Whether the session asked, or was cloned of one that did."""
    if id(spark) in _ASKED:
        return True
    if spark is None or is_connect(spark) or not _ASKED:
        return False
    mark = spark.conf.get(_MARK, None)
    return mark is not None and int(mark) in _ASKED


def _forget_stopped() -> None:
    """Sessions that were stopped ask no more: nobody may disable them."""
    for key, spark in list(_ASKED.items()):
        if _is_stopped(spark):
            del _ASKED[key]


def _is_stopped(spark: Any) -> bool:
    return bool(spark.is_stopped if is_connect(spark) else getattr(spark.sparkContext, "_jsc", None) is None)


def _is_same(one: Any, other: Any) -> bool:
    """Whether they are one session: PySpark may make another object of it, as `SparkSession.active()` does."""
    return one is other or not (is_connect(one) or is_connect(other) or one._jsparkSession != other._jsparkSession)  # noqa: SLF001


def _classes(spark: SparkSession) -> Mapping[str, type]:
    where = "pyspark.sql.connect" if is_connect(spark) else "pyspark.sql"
    frames = f"{where}.dataframe" if is_connect(spark) else f"{where}.classic.dataframe"
    every = {
        f"{where}.catalog": ("Catalog",),
        frames: ("DataFrame",),
        f"{where}.readwriter": ("DataFrameReader", "DataFrameWriter", "DataFrameWriterV2"),
        f"{where}.streaming.readwriter": ("DataStreamReader", "DataStreamWriter"),
        f"{where}.session": ("SparkSession",),
    }
    return {name: getattr(import_module(module), name) for module, found in every.items() for name in found}


def _always(own: Any, answer: Method) -> Any:
    getter = getattr(own, "fget", None) or getattr(own, "func", None)  # of a property, or a cached one
    if getter is not None:
        return property(_always(getter, answer), doc=own.__doc__)

    @wraps(own)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return answer(own, self, *args, **kwargs) if asks(_session(self)) else own(self, *args, **kwargs)

    return method


def _door(own: Callable[..., Any], known_as: KnownAs, answer: Answer) -> Callable[..., Any]:
    signature = inspect.signature(own)
    of, named, *_ = signature.parameters

    @wraps(own)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if asks(_session(self)):
            given = signature.bind(self, *args, **kwargs).arguments
            name = str(given.pop(named)).strip()
            one = _ONE_PART.fullmatch(name)
            name = name if one is None else one["plain"] or one["quoted"]
            known = known_as(_session(self), name)
            if known is not None:
                given.pop(of)
                with as_before(self) as told:
                    return answer(NamedCall(own, self, *known, given, told, name))
        return own(self, *args, **kwargs)

    return method


@contextmanager
def as_before(of: Any) -> Iterator[Told]:
    """What a reader or writer was told, which it is told again in the end: what an answer tells it is for this call."""
    attributes = dict(vars(of))
    where, extends, parts = _TOLD.get(type(of).__name__, ("", False, ()))
    if not where or is_connect(of):
        yield Told()
        return
    java = getattr(of, where)
    made = java.getClass().getSuperclass() if extends else java.getClass()
    fields = {part: made.getDeclaredField(part) for part in parts}
    for one in fields.values():
        one.setAccessible(True)
    before = {part: one.get(java) for part, one in fields.items()}
    source = str(before["source"])
    default = _session(of).conf.get("spark.sql.sources.default")
    by_partitions, by_clusters = (
        () if columns is None or columns.isEmpty() else tuple(map(str, items(columns.get())))
        for columns in map(before.get, _COLUMNS)
    )
    try:
        yield Told(
            mode=str(before.get("curmode") or before.get("outputMode") or "Append"),
            format=None if source == default else source,
            options={str(pair._1()).lower(): str(pair._2()) for pair in items(before["extraOptions"].toSeq())},  # noqa: SLF001
            partition_by=by_partitions,
            cluster_by=by_clusters,
            schema="userSpecifiedSchema" in before and not before["userSpecifiedSchema"].isEmpty(),
        )
    finally:
        for part, value in before.items():
            fields[part].set(java, value)
        vars(of).clear()
        vars(of).update(attributes)


def forget_clusters(writer: Any) -> None:
    """Takes clustering columns from a writer, for the call that is going on: PySpark can only name others."""
    java = writer._jwrite  # noqa: SLF001
    columns = java.getClass().getSuperclass().getDeclaredField(_COLUMNS[1])
    columns.setAccessible(True)
    columns.set(java, java_class(_session(writer), "scala.Option").empty())


def _session(of: Any) -> Any:
    """The session of a reader, a writer, a DataFrame or a catalog; a session itself."""
    if is_connect(of) and type(of).__name__.endswith("Reader"):
        return of._client  # noqa: SLF001 - it has no public name
    names = ("_session", "_spark", "_sparkSession")  # a DataFrame has its columns as attributes, too
    return next((getattr(of, name) for name in names if hasattr(of, name)), of)
