"""INSERT, as Spark assigns its rows.

The rule: values are cast to the columns' types, columns are found by place or by name, and DEFAULT is the table's; an
append does none of these. Fields of structs are found by place, but in rows that need no cast by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from mica import engines
from mica.engines.spark.arrow_rows import of_arrow_table
from mica.engines.spark.errors import is_condition
from mica.engines.spark.session import is_true, without_sql_log
from mica.engines.spark.types import cast_text, refuse_mixed, type_text
from mica.errors import UserError
from mica.query import copies, described, settings
from mica.query.fixed import fixed_values
from mica.query.row_statements import Insert, with_defaults
from mica.schema import literals
from mica.schema.collations import walk_collated
from mica.schema.special import DEFAULT, GENERATED
from mica.schema.spelling import quote_if_needed
from mica.schema.types import (
    INTEGRALS,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    Primitive,
    StructField,
    StructType,
    renamed,
)
from mica.table import Table
from mica.write import rows as rows_to_write
from mica.write.assignment import assignable, is_cast, is_kept
from mica.write.once import Txn
from mica.write.rules import is_identity
from mica.write.target import target_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Runs a query of the statement.
Query = Callable[[str], "DataFrame"]


#: Precedes the name of a column whose values the table makes, in place of its DEFAULT: in no text of a user.
_MADE = "\0made "


def insert(spark: SparkSession, table: Table, statement: Insert, query: Query, txn: Txn | None) -> DataFrame:
    """Appends or overwrites; the result is the number of rows. Errors: those of `Table.append` and `overwrite`."""
    rows, where, fixed, evolves = _assigned(spark, table, statement, query)
    if not statement.overwrite:
        done = table.append(rows, schema_evolution=evolves, txn=txn)
    elif statement.using:
        done = table.overwrite(rows, using=statement.using, schema_evolution=evolves, txn=txn)
    elif statement.where is None and len(fixed) < len(table.partition_by) and settings.is_dynamic(spark):
        done = table.dynamic_partition_overwrite(rows, schema_evolution=evolves, txn=txn)
    else:
        done = table.overwrite(rows, where, schema_evolution=evolves, txn=txn)
    # The rows of a commit include those that a replacement copies from rewritten files.
    count = done.rows - done.metrics.get("numCopiedRows", 0)
    return of_arrow_table(spark, described.counts({"num_affected_rows": count, "num_inserted_rows": count}))


def refuse_unfit(spark: SparkSession, table: Table, statement: Insert, query: Query) -> None:
    """Refuses what `insert` refuses before it reads a row: columns that the table lacks, or of other types."""
    rows, _, _, evolves = _assigned(spark, table, statement, query)
    rows_to_write.refuse_unfit(target_of(table.snapshot, None, overwrite=False), rows, schema_evolution=evolves)


def _assigned(
    spark: SparkSession, table: Table, statement: Insert, query: Query
) -> tuple[DataFrame, str | None, Mapping[str, str | None], bool]:
    """The rows as the table gets them, the condition of those that they replace, the columns that PARTITION gives a
    value, and whether the table gets columns that it lacks."""
    fixed = fixed_values(table, statement.partition, engines.of(spark).settings()[1])
    evolves = statement.evolves or settings.evolves(spark)
    columns = list(statement.columns) or [name for name in table.schema.names if name not in fixed]
    known = [table.schema.find(name) for name in columns]
    places = None if statement.by_name else known
    stays = not table.partition_by and not statement.using
    with copies.written(lambda given: stays and _are_stored(given, places, table.schema)):
        rows = _given(statement.query, list(map(_default, columns, known)), query)
    refuse_mixed(rows)
    if statement.by_name:
        columns = rows.columns
    elif evolves and not statement.columns:
        columns += rows.columns[len(columns) :]  # the others are new, with the names of the query
    if len(columns) != len(rows.columns):
        raise UserError(
            "INVALID_ARGUMENT",
            f"{len(rows.columns)} values are given for {len(columns)} columns: {', '.join(columns)}",
            hint="Name the columns that the values are for, in parentheses after the table."
            if columns
            else "The table has no columns yet: INSERT WITH SCHEMA EVOLUTION adds those of the query.",
        )
    own = [column for column in table.schema.fields if column.name not in fixed]
    by_name = statement.by_name or (not statement.columns and _is_read_by_name(rows, own))
    rows = rows.toDF(*columns)
    if statement.columns:
        rows = _listed(rows, table.schema)
        by_name = _is_read_by_name(rows, [one for one in known if one is not None])
    rows = as_stored(rows, table.schema, by_name=by_name)
    if evolves:
        from mica.engines.spark.assigned import without_comments

        rows = without_comments(rows, [name for name in rows.columns if table.schema.find(name) is None])
    twice = [name for name in fixed if name.lower() in map(str.lower, columns)]
    if twice:
        raise UserError(
            "INVALID_ARGUMENT",
            f"PARTITION gives {twice[0]!r} a value, and so do the rows",
            hint="Leave the column out of one of them.",
            column=twice[0],
        )
    where = statement.where
    if fixed:
        from mica.engines.spark.assigned import with_constants

        types = {name: type_text(table.schema.field(name).type) for name in fixed}
        rows = with_constants(rows, fixed, types)
        if statement.overwrite:
            values = {name: f"CAST({literals.show(text, STRING)} AS {types[name]})" for name, text in fixed.items()}
            where = " AND ".join(f"{quote_if_needed(name)} <=> {value}" for name, value in values.items())
    return rows, where, fixed, evolves


def _given(text: str, defaults: Sequence[str], query: Query) -> DataFrame:
    """The rows of an INSERT's query, in which DEFAULT is the table's unless a column of the query is called so."""
    filled = with_defaults(text, defaults)
    if filled != text and text.lstrip(" (\r\n\t")[:6].upper() == "SELECT":
        try:
            with without_sql_log():
                return query(text)
        except Exception as e:
            if not is_condition(e, "UNRESOLVED_COLUMN"):
                raise
    made = next((text for text in defaults if text.startswith(_MADE) and text in filled), None)
    if made is not None:
        name = made.removeprefix(_MADE)
        raise UserError(
            "INVALID_ARGUMENT",
            f"DEFAULT is given for {name!r}, whose values the table makes itself",
            hint="Leave the column out: name the others in parentheses after the table.",
            column=name,
        )
    return query(filled)


def _default(name: str, column: StructField | None) -> str:
    """The text that DEFAULT stands for in a row to insert; where the table makes the values, one that is refused."""
    if column is None:
        return "DEFAULT"
    if GENERATED in column.metadata or is_identity(column):
        return f"{_MADE}{name}"
    return cast_text(column.metadata.get(DEFAULT, "NULL"), column.type)


def _are_stored(given: StructType, places: Sequence[StructField | None] | None, schema: StructType) -> bool:
    """Whether Spark casts no column to those of the table's at these places, or by these names."""
    own = places if places is not None else [schema.find(name) for name in given.names]
    return all(o is not None and _cast(f.type, o.type) == f.type for f, o in zip(given.fields, own, strict=False))


def _listed(rows: DataFrame, schema: StructType) -> DataFrame:
    """The rows of an INSERT that lists its columns: structs with as many fields as the table's take their names, as in
    delta-spark, and those within arrays and maps do not."""
    from mica.engines.spark.assigned import assigned
    from mica.engines.spark.types import from_spark

    found = [(given, schema.find(given.name)) for given in from_spark(rows.schema).fields]
    named = StructType(tuple(f if own is None else replace(f, type=_named_as(f.type, own.type)) for f, own in found))
    return assigned(rows, named, named)


def _named_as(given: DataType, wanted: DataType) -> DataType:
    """A type with the names of the fields of another one that has as many."""
    match given, wanted:
        case StructType(fields), StructType(own) if len(fields) == len(own):
            named = [replace(f, name=o.name, type=_named_as(f.type, o.type)) for f, o in zip(fields, own, strict=True)]
            return StructType(tuple(named))
    return given


def _is_read_by_name(rows: DataFrame, own: Sequence[StructField]) -> bool:
    """Whether rows have the table's columns in its order, each with all fields of the column by name, and no value is
    to be cast: delta-spark stores such rows as they are, whatever the order of fields. It takes others by place."""
    from mica.engines.spark.types import from_spark

    given = from_spark(rows.schema).fields[: len(own)]
    return (
        [one.name for one in given] == [column.name for column in own]
        and all(_has_all_of(one.type, column.type) for one, column in zip(given, own, strict=True))
        and _collations(given) == _collations(own)
    )


def _collations(columns: Sequence[StructField]) -> set[tuple[tuple[str, ...], str]]:
    """Strings with a collation, which is of their types in Spark: a text with another one is cast."""
    return {(one.column, one.identifier.at(None).key) for one in walk_collated(StructType(tuple(columns)))}


def _has_all_of(given: DataType, wanted: DataType) -> bool:
    """Whether a type has all fields of another by name, each of the same type."""
    match given, wanted:
        case StructType(), StructType():
            found = {field.name: field.type for field in given.fields}
            return all(own.name in found and _has_all_of(found[own.name], own.type) for own in wanted.fields)
        case ArrayType(), ArrayType():
            return _has_all_of(given.element, wanted.element)
        case MapType(), MapType():
            return _has_all_of(given.key, wanted.key) and _has_all_of(given.value, wanted.value)
    return given == wanted


def as_stored(rows: DataFrame, schema: StructType, *, by_name: bool) -> DataFrame:
    """The rows as Spark's INSERT assigns them, which an append does not: with casts, and fields of structs by place or,
    as writers of DataFrames do, by name."""
    from mica.engines.spark.assigned import assigned
    from mica.engines.spark.types import from_spark

    if any(_is_changed(given, schema.find(given.name), by_name=by_name) for given in from_spark(rows.schema).fields):
        settings.refuse_other_casts(rows.sparkSession)
    rows = _read(rows, schema, by_name=by_name)
    named, stored = [], []
    for given in from_spark(rows.schema).fields:
        column = schema.find(given.name)
        wanted = given.type if column is None else column.type
        if not by_name:
            _refuse_fewer(given.type, wanted, given.name)
        named.append(given if by_name else replace(given, type=renamed(given.type, wanted)))
        stored.append(replace(given, type=_cast(named[-1].type, wanted)))
    return assigned(rows, StructType(tuple(named)), StructType(tuple(stored)))


def _is_changed(given: StructField, column: StructField | None, *, by_name: bool) -> bool:
    """Whether values of a column are cast, and not only fields of theirs renamed."""
    if column is None:
        return False
    return not is_kept(given.type if by_name else renamed(given.type, column.type), column.type)


def _refuse_fewer(given: DataType, wanted: DataType, name: str) -> None:
    """Refuses a struct that lacks fields: places do not say which."""
    match given, wanted:
        case StructType(fields), StructType(own):
            if len(fields) < len(own):
                raise UserError(
                    "INVALID_ARGUMENT",
                    f"{len(fields)} values are given for {len(own)} fields of {name}: {', '.join(f.name for f in own)}",
                    hint="Fields of a struct are taken by their places: give all of them, or INSERT INTO … BY NAME.",
                    column=name,
                )
            for field, known in zip(fields, own, strict=False):
                _refuse_fewer(field.type, known.type, f"{name}.{known.name}")
        case ArrayType(), ArrayType():
            _refuse_fewer(given.element, wanted.element, f"{name}.element")
        case MapType(), MapType():
            _refuse_fewer(given.key, wanted.key, f"{name}.key")
            _refuse_fewer(given.value, wanted.value, f"{name}.value")


def _read(rows: DataFrame, schema: StructType, *, by_name: bool) -> DataFrame:
    """The rows with the casts of delta-spark's INSERT that no other assignment has. Without ANSI a cast of Spark makes
    a wrong text null, and inside of another value nothing tells: there only whole values are cast, and looked at."""
    from mica.engines.spark.assigned import checked
    from mica.engines.spark.types import from_spark, to_spark

    names = {name.lower() for name in rows.columns}
    if len(names) < len(rows.columns):
        return rows
    ansi = is_true(rows.sparkSession, "spark.sql.ansi.enabled")
    columns = {}
    for given in from_spark(rows.schema).fields:
        column = schema.find(given.name)
        if column is None or not (ansi or (isinstance(column.type, Primitive) and is_cast(given.type, column.type))):
            continue
        # Without its metadata: a text with a collation may be no text any more.
        read = StructField(given.name, _as_read(given.type, column.type, by_name=by_name))
        if read.type != given.type:
            (type_,) = (field.dataType for field in to_spark(StructType((read,))).fields)
            value = rows[quote_if_needed(given.name)]
            columns[given.name] = value.cast(type_) if ansi else checked(value, given.type, type_, given.name)
    return rows.withColumns(columns) if columns else rows


def _as_read(given: DataType, wanted: DataType, *, by_name: bool) -> DataType:
    """The type that the values, and those inside of them, are cast to before any other assignment."""
    match given, wanted:
        case StructType(fields), StructType():
            own = [wanted.find(f.name) for f in fields] if by_name else wanted.fields
            types = [
                f.type if o is None else _as_read(f.type, o.type, by_name=by_name)
                for f, o in zip_longest(fields, own[: len(fields)])
            ]
            # Spark casts a Variant, which may be the JSON null, only to what may be null.
            return StructType(
                tuple(
                    replace(f, type=t, nullable=f.nullable or t != f.type) for f, t in zip(fields, types, strict=True)
                )
            )
        case ArrayType(), ArrayType():
            element = _as_read(given.element, wanted.element, by_name=by_name)
            return ArrayType(element, given.contains_null or element != given.element)
        case MapType(), MapType():
            key = _as_read(given.key, wanted.key, by_name=by_name)
            value = _as_read(given.value, wanted.value, by_name=by_name)
            return MapType(key, value, given.value_contains_null or value != given.value)
    return wanted if is_cast(given, wanted) else given


def _cast(given: DataType, wanted: DataType) -> DataType:
    """The type that an INSERT casts to. Integers are cast by the append, which names those that do not fit."""
    match given, wanted:
        case StructType(), StructType():
            own = [wanted.find(f.name) for f in given.fields]
            pairs = zip(given.fields, own, strict=True)
            return StructType(tuple(f if o is None else replace(f, type=_cast(f.type, o.type)) for f, o in pairs))
        case ArrayType(), ArrayType():
            return replace(given, element=_cast(given.element, wanted.element))
        case MapType(), MapType():
            # Keys without a type are those of map(), which Arrow cannot name.
            key = wanted.key if given.key == VOID else _cast(given.key, wanted.key)
            return replace(given, key=key, value=_cast(given.value, wanted.value))
    integers = given in INTEGRALS and wanted in INTEGRALS
    return wanted if wanted != VARIANT and not integers and assignable(given, wanted) else given
