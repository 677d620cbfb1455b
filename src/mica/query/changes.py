"""Runs a statement on a table of mica's, by the calls of `Table`.

The rule: a statement does what the call of its name does, on the session; its result is one DataFrame, with the columns
that delta-spark gives. A table that is not mica's leaves the statement to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica import compute as pc
from mica import engines
from mica.engines.spark import catalog
from mica.engines.spark.arrow_rows import of_arrow_table
from mica.engines.spark.scripts import local_variables
from mica.engines.spark.session import has_delta
from mica.engines.spark.types import from_spark, of_arrow
from mica.errors import UserError
from mica.log.user_metadata import user_metadata
from mica.maintain.drop import drop
from mica.properties import parse_names
from mica.query import described, inserts, kept_names, names, registry, settings, views
from mica.query.cloned import is_catalogs, make_clone
from mica.query.insert import Query, insert
from mica.query.lent import is_hidden
from mica.query.located import full_name, known_as, new_name
from mica.query.made import is_taken, like, make
from mica.query.optimized import optimized
from mica.query.row_statements import Delete, Insert, MergeInto, RowChange, Update, behind, of_columns
from mica.query.statement_parts import ended
from mica.query.statements import CloneOf, Create, CreateLike, History, Inserts, Optimize, Selected, Statement, VacuumOf
from mica.query.subqueries import with_values
from mica.query.table_statements import ConvertToDelta, Drop, DropSchema, LetGo, Question, Relocate, Rename, TableCall
from mica.query.tables import tables_of, target, unknown
from mica.query.view_changes import refuse_temporary, viewed
from mica.query.view_statements import DropView, RenameView, StoredView, UnkeptView, View
from mica.query.viewed import over_views
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.ddl import parse_new_columns
from mica.schema.spelling import quote_if_needed, quoted, spelled
from mica.table import Table
from mica.write.assignment import casting
from mica.write.change import from_itself
from mica.write.commit import Commit
from mica.write.merge_clauses import without_alias
from mica.write.once import Txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: The statements on a table that change none of its rows, or all of them.
Shaping = Optimize | VacuumOf | History | TableCall | Question


def run(spark: SparkSession, statement: Statement, query: Query, text: str) -> DataFrame | None:
    """The statement's result; None if it names no table of mica's.

    Errors: those of the calls of `Table`; INVALID_ARGUMENT for a view that cannot be stored.
    """
    if isinstance(statement, Create | CreateLike | CloneOf) and not names.is_path(statement.table):
        statement = replace(statement, table=new_name(spark, statement.table))
    match statement:
        case Create() | ConvertToDelta():
            with user_metadata(settings.user_metadata(spark)):
                make(spark, statement, query) if isinstance(statement, Create) else _convert(spark, statement)
            return _nothing(spark)
        case CreateLike():
            return _made_like(spark, statement, query)
        case CloneOf():
            return _cloned(spark, statement)
        case View() | UnkeptView() | StoredView():
            return _nothing(spark) if views.make(spark, statement, query) else None
        case RenameView():
            return _nothing(spark) if views.rename(spark, statement) else None
        case DropView():
            views.refuse_table(spark, statement.name, f"DROP TABLE {spelled(statement.name)}")
            return None
        case Selected():
            return _selected(spark, statement, query) if views.reads_ours(spark, statement.query) else None
        case Inserts():
            return inserts.run(spark, statement, query, partial(run, spark))
        case Rename():
            return _renamed(spark, statement)
        case Relocate():
            return _relocated(spark, statement)
        case Drop():
            return _dropped(spark, statement)
        case LetGo():
            is_path = names.is_path(statement.table) and not has_delta(spark)
            known = is_path or _named(spark, statement) is not None or views.is_stored(spark, statement.table)
            return _nothing(spark) if known else None
        case DropSchema():
            _empty_schema(spark, statement)
            return None
        case Delete() | Update() | Insert() | MergeInto():
            return _on_rows(spark, statement, query, text)
        case _:
            return _on_table(spark, statement, text)


def _on_rows(spark: SparkSession, statement: RowChange, query: Query, text: str) -> DataFrame | None:
    """The numbers of rows that change; None if the table, and what an INSERT selects, is Spark's."""
    table, ctes = target(spark, statement.table), statement.ctes
    shown = viewed(spark, statement.table, inserts=isinstance(statement, Insert)) if table is None else None
    table = table if shown is None else shown.table
    if table is None:
        if isinstance(statement, Insert):
            return _into_sparks(spark, statement, query, text)
        _refuse_hidden(spark, statement, statement.table)
        views.refuse_stored(spark, statement.table)
        refuse_temporary(spark, statement.table)
        return None
    settings.refuse_other_meaning(spark, text, [ctes, _query_of(statement)])
    if not isinstance(statement, Insert) or statement.where is not None:
        settings.refuse_other_blanks(spark, table.schema)
    statement = of_columns(statement, table.schema)
    settings.refuse_other_case(spark, *_names_of(statement), table.schema)
    ran = list[str]()

    def noted(text: str) -> DataFrame:
        ran.append(behind(ctes, text))
        return query(ran[-1])

    with user_metadata(settings.user_metadata(spark)):
        with from_itself(lambda: any(_reads(tables_of(text, spark), table) for text in ran)):
            done = _rows_changed(spark, table, statement, noted, settings.txn(spark))
        settings.reset_txn(spark)
        if shown is not None:
            shown.show_again()
        return done


def _into_sparks(spark: SparkSession, statement: Insert, query: Query, text: str) -> DataFrame | None:
    """Spark's INSERT of what a query of mica's tables gives; None if it has none."""
    if not views.reads_ours(spark, statement.query, statement.ctes):
        return None
    before = ended(text).removeprefix(statement.ctes).removesuffix(statement.query)
    return _selected(spark, Selected(before, behind(statement.ctes, statement.query)), query)


def _on_table(spark: SparkSession, statement: Shaping, text: str) -> DataFrame | None:
    """What a statement does to a table, or tells of it; None if the table is Spark's."""
    reads = isinstance(statement, Question | History)
    table = target(spark, statement.table, catalogs=not _is_catalogs(statement), reads=reads)
    if table is None:
        _refuse_hidden(spark, statement, statement.table)
        _refuse_unknown(spark, statement)
        return None
    settings.refuse_other_meaning(spark, text)
    settings.refuse_other_case(spark, *_names_of(statement), table.schema)
    with user_metadata(settings.user_metadata(spark)):
        return _shaped(spark, table, statement)


def _made_like(spark: SparkSession, statement: CreateLike, query: Query) -> DataFrame | None:
    source = target(spark, statement.source, catalogs=statement.ours, reads=True)
    if source is None:
        return None
    with user_metadata(settings.user_metadata(spark)):
        like(spark, statement, source, query)
    return _nothing(spark)


def _cloned(spark: SparkSession, statement: CloneOf) -> DataFrame | None:
    """The numbers of a clone, of which there are none where IF NOT EXISTS finds a table; None if it is Spark's."""
    if is_catalogs(spark, statement):
        return None
    source = target(spark, statement.source, reads=True)
    if source is None:
        _refuse_unknown(spark, statement)
        return None
    with user_metadata(settings.user_metadata(spark)):
        done = make_clone(spark, statement, source)
    return _nothing(spark) if done is None else of_arrow_table(spark, done)


def _refuse_hidden(spark: SparkSession, statement: Statement, parts: tuple[str, ...]) -> None:
    """Refuses a registered name that is no table, since the session has a view of its own by it, where Spark would not
    say so. Errors: INVALID_ARGUMENT."""
    name = parts[0]
    describes = isinstance(statement, Question) and statement.what != "detail"
    if len(parts) > 1 or describes or isinstance(statement, Insert) or known_as(spark, parts) != parts:
        return
    raise UserError(
        "INVALID_ARGUMENT",
        f"{name} is a temporary view of the session, which comes before the table that is registered by this name",
        hint=f"Name the table by its path, delta.`PATH`, or take the view away: DROP VIEW {name}.",
    )


def _refuse_unknown(spark: SparkSession, statement: Shaping | CloneOf) -> None:
    """Refuses an unknown table of a statement that Spark's parser does not have: it would name a syntax error.
    Errors: TABLE_NOT_FOUND."""
    match statement:
        case Optimize(table=name) | VacuumOf(table=name) | History(table=name) | CloneOf(source=name):
            pass
        case TableCall(table=name, method="restore" | "fsck") | Question(table=name, what="detail"):
            pass
        case _:
            return
    if has_delta(spark) and not _is_own(statement):
        return
    views.refuse_stored(spark, name)
    refuse_temporary(spark, name)
    raise unknown(name)


def _is_catalogs(statement: Shaping) -> bool:
    """Whether Spark runs it on a table of its catalog."""
    return isinstance(statement, TableCall | Question) and not _is_own(statement)


def _is_own(statement: Shaping | CloneOf) -> bool:
    """Whether delta-spark does not know it for a Delta table of the catalog: FSCK, SHOW CREATE TABLE."""
    match statement:
        case TableCall(method="fsck") | Question(what="statement"):
            return True
    return False


def _query_of(statement: RowChange) -> str:
    """The part of a statement that Spark runs."""
    match statement:
        case Insert(query=query) | MergeInto(source=query):
            return query
    return ""


def _reads(named: names.Named | None, table: Table) -> bool:
    """Whether a text reads the table, other than at a version or time."""
    if named is None:
        return False
    own = table.snapshot.metadata.id
    return any(view.snapshot.metadata.id == own and name not in named.pinned for name, view in named.views.items())


def _names_of(statement: RowChange | Shaping) -> tuple[list[str], list[str]]:
    """The columns that a statement changes, and the expressions that name no others than the table's."""
    match statement:
        case Delete(where=where):
            return [], [where] if where else []
        case Update(set=values, where=where):
            return [*values], [*values.values(), *([where] if where else [])]
        case Insert(columns=columns, partition=partition, where=where):
            return [*map(quote_if_needed, (*columns, *partition))], [where] if where else []
        case MergeInto(alias=alias, clauses=clauses):
            return [without_alias(column, alias) for clause in clauses for column in clause.values or ()], []
        case Optimize(where=where, zorder_by=columns):
            return [], [*columns, *([where] if where else [])]
        case TableCall(arguments={"expr": expr}):
            return [], [expr]
        case TableCall(arguments={"columns": str(new)}):
            return [spelled(path) for path in _paths_of(new)], []
        case TableCall(arguments={"columns": columns}):
            return columns, []
        case TableCall(arguments={"changes": changes}):
            return [name for column, change in changes.items() for name in _altered(column, change)], []
        case TableCall(arguments={"column": column} as arguments):
            return [*_altered(column, arguments)], []
    return [], []


def _altered(column: str, change: Mapping[str, Any]) -> Iterator[str]:
    """The column that changes, and the one that it comes after."""
    yield column
    if "after" in change:
        yield ".".join((*map(quoted, parse_names(column)[0][:-1]), change["after"]))


def _paths_of(columns: str) -> Iterator[tuple[str, ...]]:
    """The structs that ADD COLUMNS names, and the columns and fields that new ones come after."""
    for new in parse_new_columns(columns):
        path = (*new.into, *([new.after] if new.after is not None else []))
        if path:
            yield path


def _rows_changed(spark: SparkSession, table: Table, statement: RowChange, query: Query, txn: Txn | None) -> DataFrame:
    names_of_rows = {*map(str.lower, table.schema.names)}
    if isinstance(statement, MergeInto):
        source = query(statement.source)
        names_of_rows |= {*map(str.lower, (*source.columns, statement.alias, statement.source_alias))}
    variables = {*catalog.variables(spark), *local_variables(spark)}
    valued = partial(with_values, query=query, variables=variables, columns=names_of_rows)
    match statement:
        case Delete(where=text):
            done = table.delete(text and valued(text), spark=spark, txn=txn)
            return _changed(spark, done, "numDeletedRows")
        case Update(set=texts, where=text):
            values = {column: valued(value) for column, value in texts.items()}
            with casting(partial(settings.refuse_other_casts, spark)):
                done = table.update(values, text and valued(text), spark=spark, txn=txn)
            return _changed(spark, done, "numUpdatedRows")
        case Insert(where=text):
            return insert(spark, table, replace(statement, where=text and valued(text)), query, txn)
        case MergeInto():
            return _merge(spark, table, statement, source, valued, txn)


def _shaped(spark: SparkSession, table: Table, statement: Shaping) -> DataFrame:
    """The statement's result; no `txn` of the session applies to it."""
    match statement:
        case Optimize(where=where, zorder_by=columns, full=full, purge=purge):
            before = table.snapshot
            considered = len(Scan(TableSource(before), where).plan.kept)
            done = table.optimize(where, zorder_by=list(columns) or None, full=full, purge=purge, spark=spark)
            return _frame(spark, optimized(table.path, before, done, considered))
        case VacuumOf(retain=retain, dry_run=dry, lite=lite):
            keeps = settings.keeps_retention(spark)
            vacuum = table.vacuum(retain, dry_run=dry, enforce_retention=keeps, lite=lite)
            return _frame(spark, described.vacuumed(vacuum, table.path, table.snapshot.storage))
        case History(limit=limit):
            return _frame(spark, described.history(table, limit))
        case Question(table=name, what=what, key=key, partition=partition):
            zone = engines.of(spark).settings()[1]
            managed = False
            if what in ("detail", "extended"):
                known, own = known_as(spark, name), full_name(spark, name)
                managed = known is not None and registry.is_managed(".".join(known))
                name = () if own is None else tuple(own.split("."))
            return _frame(spark, described.answer(table, what, key, name, zone, partition, managed=managed))
        case TableCall():
            return _called(spark, table, statement)


def _called(spark: SparkSession, table: Table, call: TableCall) -> DataFrame:
    """The call's result: what a restore did, the files that a fsck found, or nothing."""
    on_session = call.method in ("delete", "add_constraint", "alter_column", "alter_columns")
    arguments = {**call.arguments, **({"spark": spark} if on_session else {})}
    if "timestamp" in arguments:
        arguments["timestamp"] = settings.moment(spark, arguments["timestamp"])
    done = getattr(table, call.method)(**arguments)
    if call.method == "fsck":
        return _frame(spark, described.fscked(done))
    if call.method != "restore":
        return _nothing(spark)
    sizes = table.snapshot.files.column("size")
    found = {
        "table_size_after_restore": pc.sum(sizes).as_py() or 0,
        "num_of_files_after_restore": len(sizes),
        "num_removed_files": done.removed_files,
        "num_restored_files": done.restored_files,
        "removed_files_size": done.removed_bytes,
        "restored_files_size": done.restored_bytes,
    }
    return of_arrow_table(spark, described.counts(found))


def _changed(spark: SparkSession, commit: Commit, metric: str) -> DataFrame:
    return of_arrow_table(spark, described.counts({"num_affected_rows": commit.metrics.get(metric, 0)}))


def _merge(
    spark: SparkSession, table: Table, statement: MergeInto, source: DataFrame, valued: Callable[[str], str],
    txn: Txn | None,
) -> DataFrame:  # fmt: skip
    settings.refuse_other_blanks(spark, from_spark(source.schema))
    merge = table.merge(
        source,
        valued(statement.on),
        source_alias=statement.source_alias,
        target_alias=statement.alias,
        schema_evolution=statement.evolves or settings.evolves(spark),
        spark=spark,
    )
    for clause in statement.clauses:
        name = f"when_{clause.kind.replace(' ', '_')}_{clause.action}"
        named: Any = {"condition": clause.condition and valued(clause.condition)}
        if clause.action == "delete":
            merge = getattr(merge, name)(**named)
        elif clause.values is None:
            merge = getattr(merge, f"{name}_all")(**named)
        else:
            values = {column: valued(text) for column, text in clause.values.items()}
            merge = getattr(merge, name)(values, **named)
    with casting(partial(settings.refuse_other_casts, spark)):
        metrics = merge.execute(txn=txn).metrics
    counts = {
        "num_updated_rows": metrics.get("numTargetRowsUpdated", 0),
        "num_deleted_rows": metrics.get("numTargetRowsDeleted", 0),
        "num_inserted_rows": metrics.get("numTargetRowsInserted", 0),
    }
    counts = {"num_affected_rows": sum(counts.values()), **counts}
    return of_arrow_table(spark, described.counts(counts))


def _named(spark: SparkSession, statement: Rename | Relocate | Drop | LetGo) -> tuple[str, ...] | None:
    """The registered name of a statement about names; None for Spark's, and for a temporary view that hides one: it is
    the view that is dropped then, and not a table with its files."""
    (name, *more) = statement.table
    if names.is_path(statement.table) or (not more and is_hidden(spark, name)):
        return None
    return known_as(spark, statement.table)


def _renamed(spark: SparkSession, statement: Rename) -> DataFrame | None:
    """A registered name becomes another; any other table is Spark's to rename. The files stay where they are."""
    known = _named(spark, statement)
    if known is None:
        return None
    new = (*known[:-1], *statement.name) if len(statement.name) == 1 else new_name(spark, statement.name)
    if len(new) > len(known):
        raise UserError.bad_value("RENAME TO", spelled(new), f"one name, as {spelled(known)} is a registered one")
    if not registry.is_everywhere(known[0]) and is_taken(spark, new):
        message = f"Spark's catalog has a table or view {spelled(new)}"
        raise UserError("TABLE_EXISTS", message, hint="Choose another name.")
    kept_names.rename(spark, ".".join(known), ".".join(new))
    return _nothing(spark)


def _relocated(spark: SparkSession, statement: Relocate) -> DataFrame | None:
    """A registered name becomes that of another table with the same columns; any other table is Spark's."""
    known = _named(spark, statement)
    if known is None:
        return None
    kept_names.relocate(spark, ".".join(known), statement.location)
    return _nothing(spark)


def _dropped(spark: SparkSession, statement: Drop) -> DataFrame | None:
    """A registered name is forgotten. The files of a table that was made without a place go with it, others stay, as
    those of Spark's managed and external tables do. Any other table is Spark's to drop."""
    known = _named(spark, statement)
    if known is None:
        return None
    name = ".".join(known)
    storage = registry.storage_of(name)
    if storage is not None and registry.is_managed(name):
        drop(storage)
    kept_names.forget(spark, name)
    return _nothing(spark)


def _empty_schema(spark: SparkSession, statement: DropSchema) -> None:
    """Registered names of a database go with it; Spark, which drops it, takes one with such tables for empty, and
    deletes its folder. Errors: INVALID_ARGUMENT for one with tables, without CASCADE."""
    schema = tuple(registry.without_catalog((*statement.schema, ""))[:-1])
    known = registry.in_database(".".join(schema).lower()) if spark.catalog.databaseExists(spelled(schema)) else []
    if known and not statement.cascade:
        raise UserError(
            "INVALID_ARGUMENT",
            f"the database {spelled(schema)} is not empty: it has {', '.join(sorted(known))}",
            hint="Add CASCADE to drop its tables, too.",
        )
    for name in known:
        _dropped(spark, Drop((*schema, name)))


def _convert(spark: SparkSession, statement: ConvertToDelta) -> None:
    settings.refuse_other_meaning(spark, statement.partition_by or "")
    if Table.exists(statement.path):
        return  # as in delta-spark: a script may run again
    properties = settings.with_defaults(spark, {})
    Table.convert_to_delta(statement.path, statement.partition_by, properties=properties, spark=spark)


def _selected(spark: SparkSession, statement: Selected, query: Query) -> DataFrame | None:
    """Spark runs its statement over the rows of the query."""
    return over_views(spark, [statement.before, statement.query], lambda _: True, query)


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    # Spark Connect takes no table without rows, unless it is told the schema.
    return of_arrow_table(spark, rows, of_arrow(rows.schema))


def _nothing(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], "one INT").drop("one")
