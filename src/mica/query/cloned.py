"""Runs CREATE TABLE … SHALLOW CLONE.

The rule: a clone that the session's catalog would have (a name that is not registered, in a session with delta-spark,
of a source that delta-spark knows) is Spark's to make. Any other one is made as by `Table.clone`, and a name of one
part is registered for it. The result has delta-spark's columns, and no row where IF NOT EXISTS finds a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from mica import compute as pc
from mica.engines.spark.session import has_delta
from mica.errors import UserError
from mica.log.snapshot import exists, load
from mica.maintain.clone import clone
from mica.query import described, names, registry, settings
from mica.query.made import name_it, place_of, storage_for
from mica.query.statements import CloneOf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mica.table import Table


def is_catalogs(spark: SparkSession, statement: CloneOf) -> bool:
    """Whether the catalog of a session with delta-spark gets the clone."""
    if names.is_path(statement.table) or not has_delta(spark):
        return False
    return not any(len(name) == 1 and registry.is_registered(name[0]) for name in (statement.table, statement.source))


def make_clone(spark: SparkSession, statement: CloneOf, source: Table) -> pa.Table | None:
    """Makes the clone, and returns the numbers of it; None if the statement leaves a table as it is."""
    there = place_of(statement)
    target = storage_for(spark, statement, there, source.snapshot.storage)
    if target is None:
        return None
    is_there = exists(target)
    named = not names.is_path(statement.table)
    if is_there and statement.mode == "ignore":
        if named:
            name_it(spark, statement, target, there)
        return None
    if statement.replaces and not is_there:
        raise UserError("TABLE_NOT_FOUND", f"there is no table at {target} to replace", hint="Write CREATE OR REPLACE.")
    at = source.snapshot
    if statement.version is not None or statement.timestamp is not None:
        moment = None if statement.timestamp is None else settings.moment(spark, statement.timestamp)
        at = load(at.storage, statement.version, moment)
    clone(at, target, statement.properties, replaces=statement.mode == "overwrite")
    if named:
        name_it(spark, statement, target, there)
    return described.counts(
        {
            "source_table_size": pc.sum(at.files.column("size")).as_py() or 0,
            "source_num_of_files": at.files.num_rows,
            "num_removed_files": 0,
            "num_copied_files": 0,
            "removed_files_size": 0,
            "copied_files_size": 0,
        }
    )
