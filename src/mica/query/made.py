"""Runs CREATE TABLE and REPLACE TABLE … USING mica.

The rule: a table is made in one commit, by the call of `Table`, and its name is registered for it. A table
that is at the place already only gets the name, if it is as the statement says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from mica import engines
from mica.collation.names import BINARY, is_binary
from mica.engines.spark import catalog, metastore
from mica.engines.spark.types import from_spark
from mica.errors import UserError
from mica.log import clustering
from mica.log.configuration import checked, kept
from mica.log.snapshot import Snapshot, exists
from mica.log.user_metadata import user_metadata
from mica.maintain.create import base_of, create
from mica.properties import (
    CHECKPOINT_POLICY,
    COLUMN_MAPPING_MODE,
    COMMENT,
    DEFAULT_COLLATION,
    ENABLE_DELETION_VECTORS,
    ENABLE_ROW_TRACKING,
    ENABLE_SHREDDING,
    IN_COMMIT_TIMESTAMPS,
    NAMES_OF_WRITERS,
)
from mica.query import copies, kept_names, names, registry, settings
from mica.query.create_text import column_text, create_text
from mica.query.frames import narrowed
from mica.query.insert import Query
from mica.query.located import new_name
from mica.query.statements import CloneOf, Create, CreateLike, parse_statement
from mica.schema import char
from mica.schema.ddl import parse_ddl
from mica.schema.new_columns import nullable
from mica.schema.spelling import quote_if_needed, spelled
from mica.schema.types import StructType
from mica.storage import Storage
from mica.table import Table
from mica.write.rules import constraints, expressions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HOW_KEPT = (
    COLUMN_MAPPING_MODE,
    ENABLE_ROW_TRACKING,
    IN_COMMIT_TIMESTAMPS,
    ENABLE_SHREDDING,
    ENABLE_DELETION_VECTORS,
    CHECKPOINT_POLICY,
)
#: What a replaced table keeps: how its columns, rows and times are told apart, which earlier versions need, too, and,
#: as in delta-spark, deletion vectors and the form of checkpoints.
_STAYING = NAMES_OF_WRITERS | {known.name for known in _HOW_KEPT}

#: What stands for the rows in a statement that has them as a DataFrame.
ROWS = "TABLE rows"


def make(
    spark: SparkSession, statement: Create, query: Query, constraints: Mapping[str, str] | None = None
) -> Table | None:
    """Makes the table at its location, or below the session's warehouse, and registers its name. A registered
    name means its table. `constraints` are those of a table that it is like, by their names. None if the statement
    leaves a table as it is."""
    settings.refuse_other_meaning(spark, statement.ddl)
    collation = statement.collation or BINARY
    if statement.query is not None and not is_binary(collation):
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            "DEFAULT COLLATION says nothing of the strings of a query here",
            hint=f"Name it in the query: SELECT c COLLATE {collation.name} AS c.",
        )
    parts = statement.table
    there = place_of(statement)
    storage = storage_for(spark, statement, there)
    if storage is None:
        return None
    place = str(storage)
    base = base_of(storage)
    unnamed = _is_new_entry(spark, parts, there)
    if statement.replaces and (unnamed or isinstance(base, Storage)):
        missing = spelled(parts) if unnamed else f"at {place}"
        raise UserError("TABLE_NOT_FOUND", f"there is no table {missing} to replace", hint="Write CREATE OR REPLACE.")
    if isinstance(base, Snapshot) and _only_names(statement):
        if statement.mode == "error":
            if there is not None:
                hint = "Leave the statement out, or write IF NOT EXISTS."
                raise UserError(
                    "TABLE_EXISTS", f"the name {spelled(parts)} is that of the table {there} already", hint=hint
                )
            _refuse_another(statement, Table(base))
        kept_names.give(spark, ".".join(parts), storage)
        return None
    with copies.written(lambda _: not statement.partition_by):
        rows = None if statement.query is None else query(statement.query)
    made: Any = _columns(statement) if statement.ddl else None
    if made is None and rows is None and statement.mode == "ignore" and isinstance(base, Snapshot):
        return None  # it has its name and its columns
    # The columns of a query become nullable, as delta-spark's do: that no literal is null says nothing of later rows.
    if made is None:
        made = StructType() if rows is None else nullable(from_spark(rows.schema))
    rules = [text for _, _, text in expressions(made, statement.properties)]
    layout = [*map(quote_if_needed, statement.partition_by), *statement.cluster_by]
    settings.refuse_other_case(spark, layout, rules, made)
    done = create(
        base,
        made,
        list(statement.partition_by),
        _properties(spark, statement, base),
        statement.mode,
        rows,
        list(statement.cluster_by),
        *engines.of(spark).settings(),
        constraints=constraints,
        verb="REPLACE" if statement.replaces else "CREATE OR REPLACE",
    )
    if not names.is_path(parts):
        name_it(spark, statement, storage, there)
    return None if done is base else Table(done)


def _columns(statement: Create) -> StructType:
    """The columns that a statement lists."""
    return parse_ddl(statement.ddl, statement.collation or BINARY)


def _properties(spark: SparkSession, statement: Create, base: Snapshot | Storage) -> dict[str, str | None]:
    """The properties of the table; None for those that go. A statement that replaces a table tells all of it, as in
    delta-spark: what it does not name goes, also the comment and the constraints."""
    default = {} if statement.collation is None else {DEFAULT_COLLATION: statement.collation.name}
    told = settings.with_defaults(spark, {**statement.properties, **default})
    if not isinstance(base, Snapshot):
        return dict(told)
    named = {name.lower() for name in told}
    held = (name for name in (*base.metadata.configuration, COMMENT) if name not in _STAYING)
    return {**{name: None for name in held if name.lower() not in named}, **told}


def make_of_rows(spark: SparkSession, statement: Create, rows: DataFrame, options: Mapping[str, str]) -> None:
    """Makes a table of a DataFrame, whose statement has `ROWS` for a query; `options` of the write, by their names in
    lower case. Errors: TABLE_EXISTS, TABLE_NOT_FOUND and those of `Table.create`."""
    if not names.is_path(statement.table):
        statement = replace(statement, table=new_name(spark, statement.table))
    with user_metadata(options.get("usermetadata") or settings.user_metadata(spark)):
        make(spark, statement, lambda _: narrowed(rows) or rows)


def name_it(spark: SparkSession, statement: Create | CloneOf, storage: Storage, there: str | None) -> None:
    """Gives a statement's name to its table; a new one without a location goes when the name does, as Spark's do.
    `there` as for `storage_for`."""
    kept_names.give(spark, ".".join(statement.table), storage, managed=there is None and statement.location is None)


def place_of(statement: Create | CloneOf) -> str | None:
    """The place of the table that has the statement's name already, as far as mica knows it; what a metastore says is
    so without its files, too. Errors: INVALID_ARGUMENT if none can have it."""
    parts = statement.table
    if names.is_path(parts):
        return None
    refuse_odd(parts)
    known = registry.storage_of(parts)
    is_kept = registry.kept_at(".".join(parts)) is not None
    return None if known is None or not (is_kept or exists(known)) else str(known)


def refuse_odd(parts: Sequence[str]) -> None:
    """Refuses a name that no table can have. Errors: INVALID_ARGUMENT."""
    for part in parts:
        if not registry.IDENTIFIER.fits(part):
            raise UserError.bad_value("the table", part, "an identifier (letters, digits and _), or delta.`PATH`")


def storage_for(
    spark: SparkSession, statement: Create | CloneOf, there: str | None, source: Storage | None = None
) -> Storage | None:
    """Where a statement makes its table: at its location, its path, at the place of its name (`there`), or below the
    session's warehouse; with the options of the store of its `source`, if it has one. None if it leaves the table of
    this name as it is. Errors: TABLE_EXISTS, INVALID_ARGUMENT."""
    open_ = Storage.open if source is None else source.like
    parts = statement.table
    place = statement.location or (parts[1] if names.is_path(parts) else None)
    if there is not None and place is not None and Storage.open(place).uri != Storage.open(there).uri:
        if statement.mode == "ignore":
            return None
        raise UserError(
            "TABLE_EXISTS", f"the name {spelled(parts)} is that of the table {there}", hint="Use another name."
        )
    place = place or there
    if place is None or _is_new_entry(spark, parts, there):
        name = spelled(parts if len(parts) > 1 or place is None else (registry.DEFAULT, *parts))
        if statement.mode == "ignore" and is_other_table(spark, name):
            return None
        refuse_other_table(spark, name)
        place = place or new_place(spark, parts)
    return (registry.storage_of(".".join(parts)) if there is not None else None) or open_(place)


def _is_new_entry(spark: SparkSession, parts: Sequence[str], there: str | None) -> bool:
    """Whether a name is to be entered in a metastore, which has no Delta table by it."""
    return there is None and not names.is_path(tuple(parts)) and metastore.is_ours(spark)


def like(spark: SparkSession, statement: CreateLike, source: Table, query: Query) -> None:
    """Makes a table like the source: its columns, partitions, clustering, constraints and properties, but no row."""
    made = parse_statement(create_text(source, statement.table))
    assert isinstance(made, Create)
    given = {**made.properties, **statement.properties}
    own = replace(made, mode=statement.mode, location=statement.location, properties=given)
    make(spark, own, query, constraints(source.properties))


def _only_names(statement: Create) -> bool:
    """Whether the statement may give its name to a table that is there: as an external table of Spark's catalog."""
    is_named = not names.is_path(statement.table) and statement.location is not None
    return is_named and statement.mode != "overwrite" and statement.query is None


def _refuse_another(statement: Create, table: Table) -> None:
    """Refuses a table that is not as the statement says, as far as it says something."""
    asked = dict[str, tuple[Any, Any]]()
    if statement.ddl:
        schemas = (char.sized(schema).fields for schema in (_columns(statement), table.schema))
        given, own = ([column_text(f) for f in fields] for fields in schemas)
        asked["columns"] = given, own
    if statement.ddl or statement.partition_by:
        asked["partition columns"] = list(statement.partition_by), list(table.partition_by)
    if statement.cluster_by:
        asked["clustering columns"] = list(statement.cluster_by), clustering.cluster_by(table.snapshot)
    there = {**table.properties, COMMENT: table.metadata.description}
    for name, text in checked(statement.properties).items():
        if name in kept({name: text}) or name == COMMENT:
            asked[f"property {name}"] = text, there.get(name)
    for what, (wanted, found) in asked.items():
        if wanted != found:
            shown, named = f"{found} instead of {wanted}", spelled(statement.table)
            raise UserError(
                "TABLE_EXISTS",
                f"a table already exists at {table.path}, and its {what} differ from the statement: {shown}",
                hint=f"CREATE TABLE {named} USING mica LOCATION '…' without columns names it as it is.",
            )


def new_place(spark: SparkSession, parts: Sequence[str]) -> str:
    """The place in the warehouse of a new table. Errors: INVALID_ARGUMENT for a database that is not there."""
    *before, _ = registry.without_catalog(parts)
    if before and not (len(before) == 1 and spark.catalog.databaseExists(before[0])):
        database = spelled(tuple(before))
        raise UserError(
            "INVALID_ARGUMENT",
            f"the session has no database {database} for the name {spelled(tuple(parts))}, of several parts",
            hint=f"CREATE SCHEMA {database}, or give the table's place: LOCATION '…', option path.",
        )
    place = free = in_warehouse(spark, parts)
    number = count(2)
    while registry.holds_another(free, parts):  # a renamed table stays where it is
        free = f"{place}_{next(number)}"
    return free


def in_warehouse(spark: SparkSession, parts: Sequence[str]) -> str:
    """The place of a table that is made without one: as Spark's, in the folder of its database."""
    *before, name = registry.without_catalog(parts)
    if len(before) > 1 or (before and not spark.catalog.databaseExists(before[0])):
        place = os.path.join(str(spark.conf.get("spark.sql.warehouse.dir")), *(f"{part}.db" for part in before), name)  # noqa: PTH118
    else:
        place = catalog.usual_place(spark, before[0] if before else registry.DEFAULT, name)
    return place.removeprefix("file:")


def is_other_table(spark: SparkSession, name: str) -> bool:
    """Whether a name is that of a table of Spark's that is no Delta table."""
    return catalog.delta_location(spark, name) is None and spark.catalog.tableExists(name)


def refuse_other_table(spark: SparkSession, name: str) -> None:
    """Refuses the name of such a table: its files would be beside mica's, and a metastore has a name once."""
    if is_other_table(spark, name):
        more = "" if metastore.is_ours(spark) else ", or give the table's place: LOCATION '…'"
        raise UserError(
            "TABLE_EXISTS",
            f"Spark's catalog has a table or view {name} that is not a Delta table",
            hint=f"Choose another name{more}.",
        )


def is_taken(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Whether Spark's catalog has a table or stored view by the name of a table in a database."""
    in_database = spelled(tuple(parts) if len(parts) > 1 else (registry.DEFAULT, *parts))
    return registry.storage_of(".".join(parts)) is None and bool(spark.catalog.tableExists(in_database))
