"""Clones of a session, in which names are what one query gives them: nobody else sees them.

The rule: the rows of a table are an empty relation that Catalyst cannot fold away (a `LogicalRDD`), which is known by
the identity of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from mica.engines.spark.catalog import CATALOG, arguments, variables
from mica.engines.spark.making import Maker
from mica.engines.spark.types import to_spark
from mica.schema.types import StructType

#: The relations of tables that were asked for last, by session: (view, schema) → (relation, identity of its rows).
_EMPTY: WeakKeyDictionary[Any, dict[tuple[str, StructType], tuple[Any, int]]] = WeakKeyDictionary()
_KEPT = 64


def cloned(spark: Any) -> Any:
    """A clone of the session, also in what Spark leaves out of one: the current catalog and the variables."""
    make, own = Maker.of(spark), spark._jsparkSession  # noqa: SLF001
    clone = own.cloneSession()
    given, taken = own.sessionState().catalogManager(), clone.sessionState().catalogManager()
    current = str(given.currentCatalog().name())
    if current != CATALOG:
        taken.setCurrentCatalog(current)
        if list(taken.currentNamespace()) != list(given.currentNamespace()):  # not all have a root to be set
            taken.setCurrentNamespace(given.currentNamespace())
    for name, definition in variables(spark).items():
        taken.tempVariableManager().create(make.seq([name]), definition, True)
    return clone


def over_frames(
    spark: Any, text: str, frames: Mapping[str, Any], args: Any, prepared: Callable[[Any], None]
) -> Any:  # fmt: skip
    """The text over DataFrames by their names, as a Dataset of the JVM: Spark alone reads it. `prepared`: what changes
    the session that reads the text."""
    clone = cloned(spark)
    prepared(clone)
    for name, frame in frames.items():
        give_rows(spark, clone, name, frame)
    return _given_back(spark, clone, text, args)


def give_rows(spark: Any, clone: Any, view: str, frame: Any) -> None:
    """Makes the view of a DataFrame in the clone."""
    rows = Maker.of(spark).of_rows(clone, frame._jdf.queryExecution().analyzed())  # noqa: SLF001
    rows.createOrReplaceTempView(f"`{view}`")


def beside_names(spark: Any, text: str, names: Mapping[str, StructType], args: Any) -> Any:
    """What a command makes of a session that has views of these names and columns, too; nobody else sees them."""
    from pyspark.sql.classic.dataframe import DataFrame

    clone, known = cloned(spark), dict[StructType, Any]()
    views = clone.sessionState().catalog()
    for name, schema in names.items():
        if schema not in known:
            without_rows(spark, clone, schema).createOrReplaceTempView(f"`{name}`")
            known[schema] = views.getRawTempView(name).get()
        else:
            views.createTempView(name, known[schema], True)
    return DataFrame(_given_back(spark, clone, text, args), spark)


def _given_back(spark: Any, clone: Any, text: str, args: Any) -> Any:
    """What a clone makes of a text, as the session's."""
    plan = clone.sql(text, arguments(spark, args)).logicalPlan()
    return Maker.of(spark).of_rows(spark._jsparkSession, plan)  # noqa: SLF001


def view_of(spark: Any, clone: Any, view: str, schema: StructType, known_as: str | None = None) -> int:
    """Makes the view of a table without rows in the clone; gives the identity of its rows. `known_as`: what tells the
    table from others by the name of the view."""
    found, number, is_new = _relation(spark, clone, view, schema, known_as or view)
    if not is_new:
        # Columns with ids of their own: the rows of two queries can be joined, as those of two of Spark's.
        clone.sessionState().catalog().createTempView(view, Maker.of(spark).anew(found), True)
    return number


def in_place_of(spark: Any, clone: Any, plan: Any, view: str, schema: StructType) -> tuple[int, Any]:
    """The identity of the rows of a table without rows, and its relation with the columns of a plan."""
    found, number, _ = _relation(spark, clone, view, schema, view)
    return number, Maker.of(spark).with_output(found.plan().get(), plan.output())


def _relation(spark: Any, clone: Any, view: str, schema: StructType, known_as: str) -> tuple[Any, int, bool]:
    """A view without rows, the identity of these, and whether it was made now; then the clone has it."""
    known, key = _EMPTY.setdefault(spark, {}), (known_as, schema)
    relation = known.get(key)
    is_new = relation is None
    if relation is None:
        # Making the view again costs more than the rest of the clone.
        frame = without_rows(spark, clone, schema)
        frame.createOrReplaceTempView(f"`{view}`")  # it may be of digits, or have letters beyond ASCII
        number = int(Maker.of(spark).identity(frame.queryExecution().analyzed().rdd()))
        relation = known[key] = clone.sessionState().catalog().getRawTempView(view).get(), number
        for oldest in list(known)[:-_KEPT]:
            known.pop(oldest, None)  # by another thread it may be gone
    return *relation, is_new


def without_rows(spark: Any, clone: Any, schema: Any) -> Any:
    """A Dataset of the clone with these columns (a schema of mica's, or of the JVM), and no row."""
    if isinstance(schema, StructType):
        schema = Maker.of(spark).type.fromJson(to_spark(schema).json())
    return clone.createDataFrame(spark.sparkContext._jsc.emptyRDD(), schema)  # noqa: SLF001
