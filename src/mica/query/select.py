"""Runs a query with narrowed scans in the places of its tables.

The rule: Spark runs the text. A scan does of it what `conditions` allows, and reads no column that Spark does not need.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mica.engines.spark import computed, text_marks
from mica.engines.spark.batches import REFUSED
from mica.engines.spark.catalyst import Query, Relation
from mica.engines.spark.cloned_session import give_rows, over_frames
from mica.engines.spark.computed import Computed
from mica.engines.spark.doors import is_enabled
from mica.engines.spark.engine import Spark
from mica.engines.spark.folds import Folded, find
from mica.engines.spark.hidden_column import by_hidden
from mica.engines.spark.marks import MarkedPlan, framed, is_mark, marked_plan, with_cached, with_names
from mica.engines.spark.marks import of_plan as framed_plan
from mica.engines.spark.needs import Needs
from mica.engines.spark.nodes import Node
from mica.engines.spark.replaced import Rows, with_scans
from mica.engines.spark.session import without_sql_log
from mica.engines.spark.stored_views import define
from mica.engines.spark.types import unread
from mica.errors import UserError
from mica.log.row_tracking import materialized
from mica.query import copies, file_names, here
from mica.query.conditions import Conditions
from mica.query.names import Named, without_star, words
from mica.query.narrowed import Narrowed
from mica.query.pushed import implied, translate, value_text
from mica.scan import little
from mica.schema.ddl import type_to_ddl
from mica.schema.hidden import METADATA, ROW_ID, ROW_VERSION, is_shown, shown, spelled
from mica.schema.types import StructType
from mica.table import Table, marked
from mica.tasks.fold import ReadFolded, foldable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_LOG = logging.getLogger("mica")


def run(spark: SparkSession, named: Named, args: Any = None, *, newest: Sequence[str] | None = None) -> DataFrame:
    """The rows of a query over these tables. `newest`: the name of the one table, which is asked for as that of no
    version: a view of all of it stands for the table. Errors: Spark's own for the text."""
    from mica.engines.spark.deferred import Deferred

    said, views = named.said, named.views
    try:
        planned = _planned(spark, named, args)
    except UserError as refused:
        found = _named_by_hidden(spark, named, args) if file_names.is_refused(refused, said) else None
        if found is None:
            raise
        return found

    def made(at_once: bool) -> Any:
        needs, places = planned
        query = needs.query
        # A view is asked again and again, and in an optimised plan the time is that of its making. Rows are written
        # once.
        anew = not at_once and query.asks_time and not copies.are_written()
        if query.is_correlated and (anew or query.is_streaming) and METADATA not in words(said):
            # Spark optimises what stands in a subquery for columns from outside: no scan can take its place before.
            return whole_tables(spark, named, views, args)
        if anew:
            needs, places = _planned(spark, named, args, optimised=False)
        rows = _all_rows(spark, places, at_once)
        java = with_scans(needs, rows)
        if plan is not None and whole is not None:
            java = text_marks.marked(spark, java, plan, whole, here=all(one.few for one in rows))
        if newest is not None and needs.query.is_whole:
            java = with_names(spark, java, (marked.NEWEST, newest))
        return needs.query.qualified(java)

    query = planned[0].query
    plan = whole = None
    # Another plan has no stream's state, and no names of files.
    if not (query.is_streaming or METADATA in words(said) or file_names.asked(said)):
        whole = partial(query.over, lambda view, columns: marked.in_place(spark, views[view], columns))
        if is_enabled(spark) and not query.asks_time:
            plan = partial(_marked, query, views)
    return Deferred(spark, query.schema, made, plan, whole)


def whole_tables(
    spark: SparkSession,
    named: Named,
    tables: Mapping[str, Table],
    args: Any = None,
    prepared: Callable[[Any], None] | None = None,
) -> Any:
    """The rows of a query as a Dataset of the JVM: Spark reads it over all rows of these tables. `prepared`: what
    changes the session that reads it."""
    frames = {view: table.to_df(spark) for view, table in tables.items()}

    def defined(clone: Any) -> None:
        if prepared is not None:
            prepared(clone)
        for name, one in named.stored.items():
            define(spark, clone, name, one, lambda own, view, key: give_rows(spark, own, view, frames[key]))

    return over_frames(spark, named.text, {view: frames[view] for view in named.own}, args, defined)


def _named_by_hidden(spark: SparkSession, named: Named, args: Any) -> DataFrame | None:
    """The rows of a text that asks for names of files that the kernel reads: `_metadata` has them; None if it has not
    all of them."""
    from mica.engines.spark.deferred import Deferred

    tables = {marked.mark_of(table.snapshot): table for table in named.views.values()}
    try:
        rows = partial(marked.in_place, spark, found_again=True)
        plan = _query(spark, named, args, True).over(lambda view, columns: rows(named.views[view], columns))
        hidden = by_hidden(spark, plan, is_mark)
        frame = None if hidden is None else framed_plan(spark, hidden)
    except Exception:  # noqa: BLE001 - it is refused
        _LOG.debug("names of files are not in _metadata", exc_info=True)
        return None
    schemas = {mark: table.schema for mark, table in tables.items()}
    given = None if frame is None else marked_plan(frame, with_cached(frame), schemas, all_known=True)
    if frame is None or given is None:
        return None
    return Deferred(spark, frame._jdf.schema(), lambda _: of_plan(spark, given, tables)._jdf)  # noqa: SLF001


def _marked(query: Query, views: Mapping[str, Table]) -> Any:
    """A text's plan with marks around its tables, for actions of DataFrames that are made of it."""
    return query.named({view: marked.mark_of(table.snapshot) for view, table in views.items()})


def narrowed(spark: SparkSession, named: Named, args: Any = None) -> list[Narrowed]:
    """The scans of a query over these tables. Errors: Spark's own for the text."""
    return _planned(spark, named, args)[1]


def of_plan(spark: SparkSession, given: MarkedPlan, tables: Mapping[str, Table]) -> DataFrame:
    """The rows of a plan that has marks of these tables, read at once."""
    needs, places = planned(spark, given, tables)
    return framed(spark, with_scans(needs, _all_rows(spark, places, True)))


def planned(spark: SparkSession, given: MarkedPlan, tables: Mapping[str, Table]) -> tuple[Needs, list[Narrowed]]:
    """What Spark needs for a plan that has marks of these tables, and how each place of a mark is read."""
    query = Query.of_plan(spark, given.java, given.marks)
    return _places(spark, query, tables, stored=copies.are_stored(query))


def _planned(
    spark: SparkSession, named: Named, args: Any, *, optimised: bool = True
) -> tuple[Needs, list[Narrowed]]:  # fmt: skip
    query = _query(spark, named, args, optimised)
    by_file = file_names.asked(named.said)
    return _places(spark, query, named.views, by_file=by_file, stored=not by_file and copies.are_stored(query))


def _places(
    spark: SparkSession, query: Query, views: Mapping[str, Table], *, by_file: bool = False, stored: bool = False
) -> tuple[Needs, list[Narrowed]]:
    """How each relation of a plan is read; `by_file`: by Spark's own reader, which knows the names of files; `stored`:
    not by that reader where the rows of one are all that is asked for."""
    by_tasks = stored and query.root.name != "Project"
    places = {
        relation: _Place(spark, relation, views[relation.view], by_file=by_file, by_tasks=by_tasks)
        for relation in query.relations
    }
    needs = Needs(query, {relation: place.evaluated for relation, place in places.items()}, extracts=not by_file)
    folds = find(needs, lambda relation, node, type_: places[relation].text(node, type_))
    folded = {fold.relation: fold for fold in folds}
    if stored and not any(place.is_little for place in places.values()):
        whole = computed.find(needs, lambda relation, node, type_: places[relation].value(node, type_))
        if whole is not None:
            return needs, [places[whole.relation].computed(whole)]
    return needs, [
        place.read(needs, folded.get(relation), None if by_file else needs.limit(relation))
        for relation, place in places.items()
    ]


def _query(spark: SparkSession, named: Named, args: Any, optimised: bool) -> Query:
    """The text's plan. One that names `_metadata`, and no column of its own by that, has it as a column of the tables,
    which no star means.

    Errors: Spark's own; UNSUPPORTED_EXPRESSION for a star over what has no such column.
    """
    texts = named.texts

    def made(text: str, shows: bool) -> Query:
        schemas = {view: shown_in(table, text, shows) for view, table in named.own.items()}
        inner = {view: shown_in(named.views[view], text, METADATA in words(text)) for view, text in texts.items()}
        return Query.of_text(spark, text, schemas, args, optimised=optimised, stored=named.stored, inner=inner)

    return with_metadata(named.text, made)


def shown_in(table: Table, text: str, shows: bool) -> StructType:
    """A table's columns in a text, and if it `shows` it `_metadata`, which has ids of rows where it tracks them, or
    where the text names one: then the error says what is missing."""
    if not shows:
        return table.schema
    named = not words(text).isdisjoint(name for _, name in (ROW_ID, ROW_VERSION))
    return shown(table.schema, ids=named or materialized(table.snapshot.metadata) is not None)


def with_metadata(text: str, made: Callable[[str, bool], T]) -> T:
    """What `made` makes of a text. If Spark finds no `_metadata` that it names, the tables show theirs as a column
    (True), and stars mean all others. Errors: UNSUPPORTED_EXPRESSION for a star over rows that have no such column."""
    if METADATA not in words(text):
        return made(text, False)
    try:
        with without_sql_log():
            return made(text, False)
    except Exception as e:
        if METADATA not in str(e):
            raise
    without = without_star(text, METADATA)
    try:
        return made(without, True)
    except Exception as e:
        if without == text or METADATA not in str(e):
            raise
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            f"a star beside {METADATA} is over other rows than those of one table",
            hint="List the columns in place of the star.",
        ) from None


def _all_rows(spark: SparkSession, places: Sequence[Narrowed], at_once: bool) -> list[Rows]:
    """What Spark gets of each place. Places that ask for the same rows, as those of a CTE that is named twice, have one
    DataFrame: it is read once here, and Spark shuffles it once."""
    known: dict[tuple[Any, ...], Rows] = {}
    found = []
    for place in places:
        key: tuple[Any, ...] = (id(place),)
        if place.folded is None and place.computed is None:
            columns = place.read.columns
            asked = None if columns is None else tuple(columns.items() if isinstance(columns, Mapping) else columns)
            # The scan's own `where` has no conditions that only skip.
            key = (place.view, place.where, place.read.where, asked, place.limit, place.reader)
        rows = known[key] = known.get(key) or _rows(spark, place, at_once)
        found.append(rows)
    return found


def _rows(spark: SparkSession, place: Narrowed, at_once: bool) -> Rows:
    """What Spark gets of a place; `at_once`: it may be read now."""
    engine, scan, folded = Spark(spark), place.read, place.folded
    if folded is not None:
        groups = here.groups(engine, scan, folded.gather) if at_once else None
        if groups is not None:
            return Rows(groups, folded, gathered=True, few=True)
        fold, tasks, size = folded.fold, scan.sent(engine.parallelism), little.size_of(scan)
        return Rows(engine.frame(ReadFolded(scan.spec(), fold), tasks, fold.schema(scan.schema), size, REFUSED), folded)
    few = place.reader == "mica" or place.limit is not None
    found = here.rows(engine, replace(scan, limit=place.limit)) if at_once and few else None
    if found is not None:
        return Rows(found, place.computed, few=True)
    return Rows(unread(scan.to_df(spark)), place.computed)


class _Place:
    """How one relation is read; `evaluated` has the numbers of the conjuncts that Spark need not evaluate."""

    def __init__(self, spark: SparkSession, relation: Relation, table: Table, *, by_file: bool, by_tasks: bool) -> None:
        self.relation, self.table, self.by_tasks = relation, table, by_tasks
        translated = zip(map(translate, relation.conjuncts), relation.expressions, strict=True)
        shown = ((found, "" if found else str(tree.java.toString())) for found, tree in translated)
        self.conditions = Conditions(table, spark, shown)
        known = self.conditions.evaluated
        self.evaluated = frozenset(known)
        for number in list(known):
            if implied(relation.conjuncts[number], [relation.conjuncts[n] for n in known if n != number]):
                del known[number]
        if by_file:
            file_names.refuse_metadata(relation.schema)
            self.conditions.give_back()
            file_names.left_to_spark(self.conditions.scan(None))
            self.evaluated = frozenset()

    def text(self, node: Node, type_: str) -> str | None:
        """The text of an expression by whose values rows may be told from each other; None if there is none."""
        found = value_text(node)
        bound = None if found is None else self.conditions.value(found)
        return None if bound is None or not foldable(bound.type) or type_to_ddl(bound.type) != type_ else found

    def value(self, node: Node, type_: str) -> str | None:
        """The text of an expression that mica computes as Spark does; None if there is none."""
        found = value_text(node)
        if node.name == "Column":
            return None if is_shown(self.relation.schema.field(node.value)) else found
        bound = None if found is None else self.conditions.value(found)
        return None if bound is None or type_to_ddl(bound.type) != type_ else found

    def computed(self, query: Computed) -> Narrowed:
        """How its rows are read if they are those of the query."""
        scan = self.conditions.scan(query.columns, self.conditions.where)
        found = self.conditions.narrowed(self.relation.view, scan, query.columns.values(), "mica")
        return replace(found, computed=query)

    @property
    def is_little(self) -> bool:
        """Whether its rows may be few: they are in this process soonest."""
        return little.is_little(self.conditions.scan(None, self.conditions.where))

    def _by_mica(self, needed: Sequence[str]) -> bool:
        """Whether Spark's own reader may not read these columns, or need not."""
        if any(is_shown(self.relation.schema.field(name)) for name in needed):
            return True
        return self.by_tasks and not self.is_little

    def read(self, needs: Needs, folded: Folded | None, limit: int | None) -> Narrowed:
        """How its rows are read for Spark."""
        needed, extractions = needs.columns[self.relation], needs.extractions[self.relation]
        where = self.conditions.where
        columns: dict[str, str] | list[str] | None = needed or _cheapest(self.table)
        if folded is not None:
            columns = folded.columns or {"one": "true"}
        elif not needs.extracts:
            columns = None
        elif extractions or where is not None or self._by_mica(needed):
            texts = spelled(self.relation.schema)
            columns = {name: texts[name] for name in needed}
            columns |= {_unlike(columns, i): e.sql for i, e in enumerate(extractions)}
            columns = columns or {"one": "true"}
        scan = self.conditions.scan(columns, where)
        failing = {e.failing for e in extractions}
        whole = [*needed, *(e.sql for e in extractions if e not in failing)]
        read = whole if folded is None else folded.columns.values()
        by = "mica" if isinstance(columns, dict) else "Spark"
        return self.conditions.narrowed(self.relation.view, scan, read, by, folded, limit)


def _unlike(columns: Mapping[str, str], number: int) -> str:
    name = f"extracted_{number}"
    while name.lower() in {c.lower() for c in columns}:
        name += "_"
    return name


def _cheapest(table: Table) -> list[str]:
    """A column whose rows are only counted; of a table without columns none."""
    return [f.name for f in sorted(table.schema.fields, key=lambda f: len(str(f.type)))[:1]]
