"""The tables of mica's that a text names in a session: all of a query, or the one of a statement.

The rule: a path comes first, then a registered name, then one of the session's catalog. What else a name means is
Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from mica import late
from mica.engines.spark import catalog
from mica.engines.spark.session import is_connect
from mica.errors import UserError
from mica.query import connect, lent, names, registry, settings
from mica.query.located import in_database, known_as, located
from mica.schema.lexical import SKIPPED
from mica.schema.spelling import spelled
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mica.storage import Storage

#: How a query begins. `WITH` and `FROM` may also lead to an INSERT, as Spark's parser decides.
_QUERY = re.compile(rf"(?>(?:\s|\(|{SKIPPED})*)(?:SELECT|WITH|FROM|VALUES|TABLE|MAP|REDUCE)\b", re.IGNORECASE)


def tables_of(text: str, spark: SparkSession) -> names.Named | None:
    """The mica tables of a query; None if the text is not a query."""
    if not _QUERY.match(text):
        return None
    moment, given = partial(settings.moment, spark), text
    text = names.selected(text) if is_connect(spark) else text  # sqlglot does not read TABLE
    parsed = relations(spark, text)
    if parsed is None:
        named = names.by_path(text, moment)
        return names.Named(named.text, {**named.views, **_mentioned(named.text)}, named.pinned)
    if parsed.changes:
        return None
    is_taken = partial(catalog.is_temporary, spark)
    named = names.by_path(text, moment, is_taken, partial(_place, spark), parsed.names)
    if named.text != text:
        parsed = relations(spark, named.text) or parsed
    text, views = named.text, dict(named.views)
    catalogued = dict[str, str]()
    for name in parsed.names:
        if name.lower() in {view.lower() for view in views}:
            continue
        table = lent.registered(spark, name)
        if table is not None:
            views[name] = table
            continue
        # Of a version or time that mica does not read, the table is Spark's.
        place = None if name in parsed.travelled else located(spark, name)
        if place is None:
            continue
        table = registry.opened(place)
        if "." in name:
            # Of two tables with the same last part, neither view is called so.
            others = {other.rpartition(".")[2].lower() for other in parsed.names if other != name}
            taken = {view.lower() for view in views} | others
            is_others = partial(_is_others, spark, known_as(spark, name.split(".")))
            found = names.renamed(text, name.split("."), taken, is_others, only_here=not isinstance(place, str))
            # Without a view Spark reads the table itself. A name may stand in the text with its catalog, too.
            if found is not None and found[0] != text:
                text, view = found
                views[view] = table
                catalogued |= {view: name} if isinstance(place, str) else {}
        else:
            views[name] = table
            catalogued |= {name: name} if isinstance(place, str) else {}
            text = names.shortened(text, (spark.catalog.currentDatabase(), name))
    return names.Named(text, views, named.pinned, catalogued, given)


def relations(spark: SparkSession, text: str) -> catalog.Parsed | None:
    """The tables that a text names; None on Spark Connect for a text that cannot be read there."""
    return connect.relations(spark, text) if is_connect(spark) else catalog.relations(spark, text)


def _is_others(spark: SparkSession, own: Sequence[str] | None, name: str) -> bool:
    """Whether a view of this name would hide another table than the registered one of the name `own`."""
    return catalog.is_temporary(spark, name) or (registry.is_registered(name) and own != (name,))


def _place(spark: SparkSession, name: str) -> Storage | str | None:
    """The place of a table of mica's by the name that a text has for it."""
    table = lent.registered(spark, name.replace("`", ""))
    return located(spark, name) if table is None else table.snapshot.storage


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
