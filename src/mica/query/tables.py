"""The tables of mica's that a text names in a session: all of a query, or the one of a statement.

The rule: a path comes first, then a registered name, then one of the session's catalog: a table's, or that of a stored
view whose text names tables of mica's. What else a name means is Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mica import late
from mica.engines.spark import catalog
from mica.engines.spark.session import has_delta, is_connect
from mica.engines.spark.stored_views import Definition, stored
from mica.errors import UserError
from mica.query import connect, lent, names, registry, settings
from mica.query.located import in_database, known_as, located
from mica.query.statement_parts import name_parts
from mica.records import dataclass
from mica.schema.hidden import METADATA
from mica.schema.lexical import SKIPPED
from mica.schema.spelling import spelled
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mica.storage import Storage

#: A stored view as Spark is given it, and what its text names.
_View = tuple[Definition, names.Named]
#: How a query begins. `WITH` and `FROM` may also lead to an INSERT, as Spark's parser decides.
_QUERY = re.compile(rf"(?>(?:\s|\(|{SKIPPED})*)(?:SELECT|WITH|FROM|VALUES|TABLE|MAP|REDUCE)\b", re.IGNORECASE)


def tables_of(
    text: str, spark: SparkSession, *, in_views: bool = True, behind: frozenset[str] = frozenset()
) -> names.Named | None:
    """The mica tables of a query, with those of stored views; None if the text is not a query. `behind`: names of
    stored views, in lower case, that temporary ones do not hide from it."""
    return _tables_of(text, _Names(spark, in_views=in_views, behind=behind))


def _tables_of(text: str, session: _Names) -> names.Named | None:
    if not _QUERY.match(text):
        return None
    spark = session.spark
    moment, given = partial(settings.moment, spark), text
    text = names.selected(text) if is_connect(spark) else text  # sqlglot does not read TABLE
    parsed = relations(spark, text)
    if parsed is None:
        named = names.by_path(text, moment)
        return names.Named(named.text, {**named.views, **_mentioned(named.text)}, named.pinned)
    if parsed.changes:
        return None
    if parsed.streams and has_delta(spark) and not any(_is_ours(session, name) for name in parsed.names):
        return None  # Spark's text reads a table as a stream, if it is one of its catalog
    named = names.by_path(text, moment, session.is_view, session.place, parsed.names)
    if named.text != text:
        parsed = relations(spark, named.text) or parsed
    text, views = named.text, dict(named.views)
    catalogued, kept = dict[str, str](), dict[str, _View]()
    for name in parsed.names:
        if name.lower() in {view.lower() for view in views}:
            continue
        table = session.registered(name)
        if table is not None:
            views[name] = table
            continue
        # Of a version or time that mica does not read, the table is Spark's.
        place = None if name in parsed.travelled else session.located(name)
        own = session.view(name) if place is None else None
        if place is None and own is None:
            continue
        view: str | None = name
        if "." in name:
            # Of two tables with the same last part, neither view is called so.
            others = {other.rpartition(".")[2].lower() for other in parsed.names if other != name}
            taken = {view.lower() for view in (*views, *kept)} | others
            only_here = not isinstance(place, str)
            found = names.renamed(text, name.split("."), taken, session.is_others(name), only_here=only_here)
            # Without a view Spark reads the table itself. A name may stand in the text with its catalog, too.
            text, view = (text, None) if found is None or found[0] == text else found
        elif session.database is None:
            text = names.shortened(text, (spark.catalog.currentDatabase(), name))
        if view is not None and own is not None:
            kept[view] = own
        elif view is not None and place is not None:
            views[view] = registry.opened(place)
            catalogued |= {view: name} if isinstance(place, str) else {}
    return _with_stored(names.Named(text, views, named.pinned, catalogued, given), kept)


def _with_stored(named: names.Named, stored: Mapping[str, _View]) -> names.Named:
    """The tables with those of stored views."""
    if not stored:
        return named
    views, pinned = dict(named.views), set(named.pinned)
    for name, (_, inner) in stored.items():
        views |= {f"{name}.{key}": table for key, table in inner.views.items()}
        pinned |= {f"{name}.{key}" for key in inner.pinned}
    definitions = {name: definition for name, (definition, _) in stored.items()}
    return replace(named, views=views, pinned=frozenset(pinned), stored=definitions)


@dataclass(frozen=True)
class _Names:
    """Where names lead in a session, or in the text of a stored view: names of one part are those of its `database`
    then, and no temporary view has any. `inside`: the views that are being read. `behind`: as of `tables_of`."""

    spark: SparkSession
    database: str | None = None
    inside: tuple[str, ...] = ()
    in_views: bool = True
    behind: frozenset[str] = frozenset()

    def is_view(self, name: str) -> bool:
        """Whether a temporary view has the name."""
        is_there = self.database is None and name.lower() not in self.behind
        return is_there and catalog.is_temporary(self.spark, name)

    def registered(self, name: str) -> Table | None:
        """The table of a registered name that each database has, or of one in the current database."""
        if self.database is None:
            return lent.registered(self.spark, name)
        everywhere = "." not in name and registry.is_everywhere(name) and self.located(name) is None
        return registry.registered(name) if everywhere else None

    def located(self, name: str) -> Storage | str | None:
        """The place of a table that a database has."""
        return located(self.spark, self._whole(name))

    def place(self, name: str) -> Storage | str | None:
        """The place of a table of mica's by the name that a text has for it."""
        table = self.registered(name.replace("`", ""))
        return self.located(name) if table is None else table.snapshot.storage

    def view(self, name: str) -> _View | None:
        """The stored view of a name, if it reads tables of mica's. Errors: INVALID_ARGUMENT if it reads itself."""
        found = stored(self.spark, self._whole(name)) if self.in_views else None
        if found is None:
            return None
        if found.name in self.inside:
            raise UserError(
                "INVALID_ARGUMENT",
                f"the view {found.name} reads itself",
                hint="Make it anew: CREATE OR REPLACE VIEW … AS a query of other tables.",
            )
        named = _tables_of(found.text, _Names(self.spark, found.database, (*self.inside, found.name)))
        if named is None or not named.views:
            return None
        text, own = named.text, named.own
        if METADATA in names.words(text) and all(one.schema.find(METADATA) is None for one in own.values()):
            text = names.without_star(text, METADATA)
        return Definition(text, found.entry, tuple(own), named.stored), named

    def is_others(self, name: str) -> Callable[[str], bool]:
        """Whether a view of a name would hide another table than the one that has this name."""
        if self.database is not None:
            return lambda _: False
        return partial(_is_others, self.spark, known_as(self.spark, name.split(".")))

    def _whole(self, name: str) -> str:
        hidden = self.database is None and name.lower() in self.behind
        database = str(self.spark.catalog.currentDatabase()) if hidden else self.database
        is_short = database is not None and len(name_parts(name) or ()) == 1
        return f"{database}.{name}" if is_short else name


def view_of(spark: SparkSession, parts: Sequence[str]) -> names.Named | None:
    """What a stored view of a name reads that Spark cannot read; None for any other name."""
    if has_delta(spark) or names.is_path(parts) or known_as(spark, parts) is not None:
        return None
    found = _Names(spark).view(spelled(tuple(parts)))
    return None if found is None else found[1]


def relations(spark: SparkSession, text: str) -> catalog.Parsed | None:
    """The tables that a text names; None on Spark Connect for a text that cannot be read there."""
    return connect.relations(spark, text) if is_connect(spark) else catalog.relations(spark, text)


def _is_ours(session: _Names, name: str) -> bool:
    """Whether a name is registered, or a path."""
    return session.registered(name) is not None or names.is_path(tuple(name.split(".", 1)))


def _is_others(spark: SparkSession, own: Sequence[str] | None, name: str) -> bool:
    """Whether a view of this name would hide another table than the registered one of the name `own`."""
    return catalog.is_temporary(spark, name) or (registry.is_registered(name) and own != (name,))


def _mentioned(text: str) -> dict[str, Table]:
    """The registered tables that a text may name: where no parser of Spark's says which words are names of tables."""
    return {name: table for name in sorted(names.words(text)) if (table := registry.registered(name)) is not None}


def target(spark: SparkSession, parts: tuple[str, ...], *, catalogs: bool = True, reads: bool = False) -> Table | None:
    """The table that a statement names; None if it is not mica's. With `catalogs` a Delta table of Spark's catalog is
    mica's too; without, the statement is left to Spark, which keeps the catalog's entry up to date. One that only
    `reads` may name a version by its path. Errors: those of `Table.open`; INVALID_ARGUMENT for a version to change."""
    if names.is_path(parts) and not _is_in_database(spark, parts):
        pinned = names.at_version(parts[1], partial(settings.moment, spark))
        if pinned is not None and not reads:
            message = f"a statement changes a table at its newest version, and {parts[1]} names another one"
            raise UserError("INVALID_ARGUMENT", message, hint=f"Name the table by its path alone: {pinned.path}.")
        return pinned or Table.open(parts[1])
    if len(parts) == 1:
        found = lent.registered(spark, parts[0])
        if found is not None:
            # Writing moves a Table: one that is kept for queries stays where it is.
            return found if registry.is_table(parts[0]) else Table(found.snapshot)
    place = located(spark, spelled(parts)) if catalogs else in_database(spark, parts)
    if isinstance(place, str):
        return Table.open(place)
    return None if place is None else Table(registry.opened(place).snapshot)


def _is_in_database(spark: SparkSession, parts: tuple[str, ...]) -> bool:
    """Whether a name that might be a path is one of a database called so: the quotes around it are gone here."""
    return registry.IDENTIFIER.fits(parts[1]) and spark.catalog.tableExists(".".join(parts))


def unknown(name: tuple[str, ...]) -> UserError:
    """The error for a name that is no table of mica's, where none of Spark's is meant."""
    near = late.difflib.get_close_matches(name[-1].lower(), registry.all_registered(), 3)
    hint = f"Is {near[0]} meant?" if near else "Name it by its path: delta.`PATH`."
    if name[0].lower() == "parquet" and len(name) > 1:
        hint = f"Only delta-spark clones Parquet files; CONVERT TO DELTA {spelled(name)} makes a table of them."
    return UserError(
        "TABLE_NOT_FOUND",
        f"neither mica.register nor the session's catalog has a Delta table {spelled(name)}",
        hint=hint,
    )
