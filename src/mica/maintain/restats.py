"""Adds bounds of collated columns and variant paths to existing files.

The rule: no data is rewritten. A file's add action is committed again with new statistics, the tag for the comparator
of its collated bounds, and `dataChange` false. If another writer removed the file meanwhile, nothing is committed:
otherwise its rows would come back.

Source: PROTOCOL.md, "Add File and Remove File" (a file that is added again has the newer line's statistics).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mica import engines
from mica.arrays import arrow_array
from mica.engines.base import Engine
from mica.errors import UserError
from mica.log import features
from mica.log.domains import COLLATIONS_DOMAIN, newer_versions
from mica.log.snapshot import Snapshot
from mica.log.transaction import Transaction
from mica.schema import collations
from mica.schema.named import find
from mica.schema.spelling import spelled
from mica.schema.types import VARIANT
from mica.stats import documents
from mica.stats.collated import CollatedBounds, CollatedColumn, with_bounds
from mica.stats.columns import IndexedColumn, indexed_leaves
from mica.stats.render import PathBounds, read_paths, with_variant_bounds
from mica.tasks.parts import FilePart, in_tasks, parts_of
from mica.tasks.variant_bounds import PATHS, VariantBoundsSpec, bounds_of_files
from mica.write.collated import bounded_columns, collated_bounds, comparable, tagged
from mica.write.commit import Commit
from mica.write.once import Txn, once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The statistics and the tags of a file, as its add action has them.
_Line = tuple[str | None, Mapping[str, str] | None]


def restats(
    snapshot: Snapshot, columns: Sequence[str] | None, spark: SparkSession | None, txn: Txn | None = None
) -> Commit:
    """Commits new bounds for all files of a version; `columns` (None: all) are collated or Variant columns.

    Errors: NEEDS_SPARK for collated columns without a session, UNKNOWN_COLUMN, those of `features.check_write`,
    ConflictError if a file was removed meanwhile.
    """
    return once(snapshot.storage, snapshot, txn, lambda: _restats(snapshot, columns, spark, txn))


def _restats(snapshot: Snapshot, columns: Sequence[str] | None, spark: SparkSession | None, txn: Txn | None) -> Commit:
    table, engine = str(snapshot.storage), engines.of(spark)
    features.check_write(snapshot.protocol, snapshot.metadata, table)
    collations.check(snapshot.schema, table)
    leaves, variants = _asked(snapshot, columns)
    files = parts_of(snapshot.files, of_log=True)
    before: list[_Line] = list(
        zip(snapshot.stats().to_pylist(), snapshot.tags().to_pylist(maps_as_pydicts="lossy"), strict=True)
    )
    after, domain = before, None
    if leaves and files:
        version = _version(leaves, engine)
        found = collated_bounds(engine, snapshot.storage, leaves, version, files)
        others = [leaf for leaf in _asked(snapshot, None)[0] if leaf not in leaves]
        after = _with_collated(after, found, version, others)
        names = [leaf.collation for leaf in leaves]
        domain = newer_versions(snapshot.protocol, snapshot.domains, names, version, table)
    if variants and files:
        after = _with_paths(after, _path_bounds(snapshot, variants, files, engine), snapshot, variants)
    changed = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new and not _same(old, new)]
    if not changed and txn is None:
        return Commit(snapshot.version, 0, 0, snapshot=snapshot)
    transaction = Transaction(snapshot, "COMPUTE STATS", {} if columns is None else {"columns": list(columns)})
    transaction.set_application_transactions(dict([txn] if txn is not None else ()))
    if domain is not None:
        transaction.set_domain(COLLATIONS_DOMAIN, domain)
    transaction.update_files(changed, _added(snapshot, changed, after))
    transaction.metrics["numUpdatedFiles"] = len(changed)
    done = transaction.commit()
    return Commit(done.version, len(changed), 0, snapshot=done.snapshot)


def _same(old: _Line, new: _Line) -> bool:
    """Whether two lines say the same, in whatever order of keys."""
    return old[1] == new[1] and documents.values(old[0]) == documents.values(new[0])


def _version(leaves: Sequence[CollatedColumn], engine: Engine) -> str:
    """The version of the engine's comparator. Errors: NEEDS_SPARK if it does not compare the strings of a column."""
    made, version = comparable(leaves, engine)
    left = [".".join(leaf.column) for leaf in leaves if leaf not in made]
    if left:
        raise UserError(
            "NEEDS_SPARK",
            f"bounds of the collated column {left[0]} need Spark's comparator, and there is no session",
            hint="Give restats a session: spark=mica.session(). Variant columns and UTF8_LCASE need none.",
        )
    return version


def _with_collated(
    lines: Sequence[_Line],
    found: Sequence[Sequence[CollatedBounds]],
    version: str,
    others: Sequence[CollatedColumn],
) -> list[_Line]:
    pairs = zip(lines, found, strict=True)
    return [(with_bounds(text, own, version, tags, others), tagged(tags)) for (text, tags), own in pairs]


def _with_paths(
    lines: Sequence[_Line],
    found: Sequence[Sequence[PathBounds]],
    snapshot: Snapshot,
    variants: Sequence[IndexedColumn],
) -> list[_Line]:
    render = partial(
        with_variant_bounds,
        schema=snapshot.schema,
        configuration=snapshot.properties,
        columns=[leaf.names for leaf in variants],
        partition_columns=snapshot.partition_columns,
    )
    return [(render(text, own), tags) for (text, tags), own in zip(lines, found, strict=True)]


def _added(snapshot: Snapshot, changed: Sequence[int], lines: Sequence[_Line]) -> list[dict[str, Any]]:
    """The add actions of the files at these positions, with their new lines."""
    at = np.array(changed, np.int64)
    found = zip(
        snapshot.files.take(arrow_array(at)).to_pylist(),
        snapshot.file_ids(at).to_pylist(),
        snapshot.clustering_providers(at).to_pylist(),
        (lines[i] for i in changed),
        strict=True,
    )
    return [
        {**row, **(ids or {}), "stats": stats, "tags": tags, "data_change": False, "clustering_provider": by}
        for row, ids, by, (stats, tags) in found
    ]


def _asked(snapshot: Snapshot, columns: Sequence[str] | None) -> tuple[list[CollatedColumn], list[IndexedColumn]]:
    """The collated and Variant columns that `columns` names, or all of them."""
    configuration, partitions = snapshot.properties, snapshot.partition_columns
    leaves = bounded_columns(snapshot.schema, snapshot.protocol, configuration, partitions)
    variants: list[IndexedColumn] = []
    if features.supports(snapshot.protocol, "variantShredding"):
        variants = [x for x in indexed_leaves(snapshot.schema, configuration, partitions) if x.type == VARIANT]
    if columns is None:
        return leaves, variants
    there = [*(x.column for x in leaves), *(x.column for x in variants)]
    wanted = {find(name, there): name for name in columns}
    if None in wanted:
        raise UserError.unknown_column(wanted[None], [*map(spelled, there)], what="column with such bounds")
    return [x for x in leaves if x.column in wanted], [x for x in variants if x.column in wanted]


def _path_bounds(
    snapshot: Snapshot, variants: Sequence[IndexedColumn], files: Sequence[FilePart], engine: Engine
) -> list[list[PathBounds]]:
    """The path bounds of each file."""
    spec = VariantBoundsSpec(snapshot.storage, tuple(leaf.names for leaf in variants), snapshot.version)
    run = partial(bounds_of_files, spec)
    batches = engine.run(run, in_tasks(files, engine.parallelism), PATHS)
    found: list[list[PathBounds]] = [[] for _ in files]
    for batch in batches:
        for file, bounds in zip(batch.column("file").to_pylist(), read_paths(batch), strict=True):
            found[file].append(bounds)
    return found
