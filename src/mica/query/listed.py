"""What lists of tables show of mica's: SHOW TABLES, SHOW VIEWS, SHOW TABLE EXTENDED, and those of the catalog.

The rule: a table that was made by its name, or that has its name with a database, is one of that database. Another
registered name is in every database, as a temporary view is, and is shown as one. Spark says which names a list takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica.engines.spark import catalog
from mica.engines.spark.arrow_rows import of_arrow_table
from mica.engines.spark.cloned_session import beside_names
from mica.engines.spark.session import is_connect
from mica.errors import MicaError
from mica.query import kept_names, names, registry
from mica.query.described import identity
from mica.query.lent import Lent, counts
from mica.query.statement_parts import name_parts
from mica.schema.lexical import GAP, SPACE
from mica.schema.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LISTS = re.compile(
    rf"(?is){GAP}SHOW{SPACE}(?:(?P<names>TABLES|(?P<views>VIEWS))|TABLE{SPACE}EXTENDED)\b"
    rf"(?:{SPACE}(?:FROM|IN)\b{GAP}(?P<database>{names.NAME.pattern}))?"
)
#: The columns of a list.
_COLUMNS = {"namespace": pa.string(), "tableName": pa.string(), "isTemporary": pa.bool_(), "information": pa.string()}


def lists(text: str) -> bool:
    """Whether a text lists tables."""
    return _LISTS.match(text) is not None


def listed(spark: SparkSession, text: str, args: Any, work: Callable[[], DataFrame]) -> DataFrame:
    """What a text lists, with mica's tables. Where it shows columns too, its pattern is asked for the names first: a
    table that it leaves out is not opened."""
    kind = _LISTS.match(text)
    by_name = kind is not None and kind["names"] is not None
    shows = kind is not None and kind["views"] is None
    database = database_of(spark, None if kind is None else kind["database"])
    if shows and not by_name and not is_connect(spark):
        kept_names.learn_all(spark, database, lambda: _names(work().collect()) | {*registry.in_database(database)})
    own = set(registry.in_database(database)) if shows else set[str]()
    if by_name:  # Spark lists what a metastore has, also after another process has changed it
        own -= {name for name in own if registry.kept_at(registry.name_in(database, name) or name) is not None}
    others = {name for name in registry.all_registered() if counts(spark, name) and registry.is_everywhere(name)}
    views = {name for name in own | others if not catalog.is_temporary(spark, name)}
    # In a clone: another thread must not read an empty view as the table.
    beside = partial(_lent_for, spark, work) if is_connect(spark) else partial(beside_names, spark, text, args=args)
    shown: DataFrame = beside(dict.fromkeys(views, StructType()))
    if not by_name:
        shown = beside(_schemas(_names(shown.collect()) & views, database, own))
    return _in_database(spark, shown, database, own, own & views - others) if own else shown


def _lent_for(spark: SparkSession, work: Callable[[], DataFrame], names: Mapping[str, StructType]) -> DataFrame:
    """What `work` lists of a session of Spark Connect, which has no clones, with views of these names, too."""
    with Lent(spark) as lent:
        lent.lend_names(names)
        return work()


def database_of(spark: SparkSession, spelled: str | None) -> str:
    """The database of a list, in lower case: the one that a text names, or the current one."""
    parts = None if spelled is None else name_parts(spelled)
    own = registry.without_catalog((*(parts or (spark.catalog.currentDatabase(),)), ""))[:-1]
    return ".".join(own).lower()


def _in_database(
    spark: SparkSession, shown: DataFrame, database: str, own: Collection[str], lent: Collection[str]
) -> DataFrame:
    """A list with the tables `own` of the database as such; those that are `lent` are no views of the session's."""
    rows = [row.asDict() for row in shown.collect()]
    temporary = [row for row in rows if row["isTemporary"]]
    mine = [
        row | {"namespace": database, "isTemporary": False} | _information(row, database)
        for row in temporary
        if row["tableName"] in own
    ]
    known = [row for row in rows if not row["isTemporary"] and row["tableName"] not in own]
    tables = sorted([*known, *mine], key=lambda row: str(row["tableName"]))
    rest = [row for row in temporary if row["tableName"] not in lent]
    fields = [pa.field(name, _COLUMNS[name], nullable=False) for name in shown.columns]
    return of_arrow_table(spark, pa.Table.from_pylist([*tables, *rest], pa.schema(fields)))


def _information(row: Mapping[str, Any], database: str) -> dict[str, str]:
    """What a row tells of its table, instead of what Spark says of the view; nothing in a list of names."""
    if "information" not in row:
        return {}
    known = registry.name_in(database, row["tableName"]) or row["tableName"]
    facts = identity((catalog.CATALOG, database, row["tableName"]), managed=registry.is_managed(known))
    lines = [f"{name}: {text}" for name, text in facts if name != "Namespace"]
    lines += ["Provider: delta", *_comment(known), f"Location: {registry.place_of(known)}"]
    _, begin, columns = str(row["information"]).partition("Schema: ")
    return {"information": "\n".join([*lines, begin + columns])}


def _comment(known: str) -> list[str]:
    """What describes the table of a name; nothing of one that is gone or damaged."""
    place = registry.storage_of(known)
    with suppress(MicaError):
        text = None if place is None else registry.opened(place).metadata.description
        return [] if text is None else [f"Comment: {text}"]
    return []


def _names(rows: Iterable[Any]) -> set[str]:
    return {row.tableName for row in rows}


def _schemas(known: Iterable[str], database: str, own: Collection[str]) -> dict[str, StructType]:
    """The columns of tables, but for those that are gone or damaged: they hide no other."""
    found = dict[str, StructType]()
    for name in known:
        with suppress(MicaError):
            place = registry.place_in(database, name) if name in own else None
            table = registry.registered(name) if place is None else registry.opened(place)
            if table is not None:
                found[name] = table.schema
    return found
