"""Optimize: small files of a partition become large ones, or the rows of all files get another order (`zorder`).

The rule: rows stay the same. Joined files keep their order, so bounds stay as narrow as neighbours allow. The commit
changes no data (`dataChange` is false): an append meanwhile is no conflict, a change of the same files is. A file is
rewritten only where it joins another one, sheds its deleted rows, gets another order, has paths that a rule leaves
for later (`mica.shredding`) or, for a purge, holds columns that were dropped (`tasks/dropped.py`). A clustered table is
ordered by its clustering columns (`log/clustering.py`).

Source: PROTOCOL.md, "Add File and Remove File"; operation and metrics as delta-spark's OPTIMIZE has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mica import engines
from mica.engines.base import Engine
from mica.errors import UserError
from mica.log import clustering
from mica.log.snapshot import Snapshot
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.tasks.dropped import NUMBERS, with_dropped
from mica.tasks.parts import FilePart, in_tasks
from mica.write import compact, zorder
from mica.write.commit import Commit
from mica.write.once import Txn, once
from mica.write.target import files_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Files that mica clustered before are ordered anew together with new ones while they have fewer bytes (delta-spark's
#: limit for its own).
CUBE_BYTES = 100 << 30


def optimize(
    snapshot: Snapshot,
    where: str | None,
    target_file_size: int | None,
    spark: SparkSession | None,
    zorder_by: Sequence[str] | None = None,
    txn: Txn | None = None,
    *,
    full: bool = False,
    purge: bool = False,
) -> Commit:
    """Joins small files, or orders the rows of all; see `Table.optimize`."""

    def write() -> Commit:
        return _optimize(snapshot, where, target_file_size, spark, zorder_by, txn, full=full, purge=purge)

    return once(snapshot.storage, snapshot, txn, write)


def _optimize(
    snapshot: Snapshot,
    where: str | None,
    target_file_size: int | None,
    spark: SparkSession | None,
    zorder_by: Sequence[str] | None,
    txn: Txn | None,
    *,
    full: bool,
    purge: bool,
) -> Commit:
    engine, cluster_by = engines.of(spark), clustering.cluster_by(snapshot)
    _refuse(snapshot, cluster_by, where, zorder_by, full=full)
    keys = cluster_by if zorder_by is None else zorder.unique(zorder_by)
    parameters: dict[str, Any] = {
        "predicate": [] if where is None else [f"({where})"],
        "zOrderBy": [] if cluster_by else keys,
    }
    if cluster_by:
        parameters |= {"clusterBy": clustering.shown(cluster_by), **({"isFull": True} if full else {})}
    target, spec = compact.opened(snapshot, target_file_size, parameters, txn)
    if purge:
        target.operation, target.parameters = "REORG", {"predicate": parameters["predicate"], "applyPurge": True}
    scan = compact.scanned(engine, TableSource(snapshot))
    files = files_in(scan, where)
    dropped = _with_dropped(engine, snapshot, scan, files) if purge else frozenset[int]()
    if cluster_by:
        chosen = {*clustering.to_cluster(snapshot, CUBE_BYTES, full=full).tolist(), *dropped}
        files = [file for file in files if file.number in chosen]
        spec = replace(spec, clustering_provider=clustering.PROVIDER)
    bins = [files] if keys else list(compact.bins_of(files, spec.target_file_size, compact.waiting(snapshot) | dropped))
    if not any(bins):
        return target.commit_nothing()
    return compact.rewritten(engine, target, scan, bins, keys, spec)


def _with_dropped(engine: Engine, snapshot: Snapshot, scan: Scan, files: Sequence[FilePart]) -> frozenset[int]:
    """The numbers of the files with columns that were dropped: only a table that maps columns can have such."""
    if snapshot.mapping == "none":
        return frozenset()
    run = partial(with_dropped, scan.rewriting())
    batches = engine.run(run, in_tasks(files, engine.parallelism), NUMBERS)
    return frozenset(number for batch in batches for number in batch.column("file").to_pylist())


def _refuse(
    snapshot: Snapshot, cluster_by: Sequence[str], where: str | None, zorder_by: Sequence[str] | None, *, full: bool
) -> None:
    """Refuses what contradicts the clustering of the table, as delta-spark does."""
    if full and not cluster_by:
        raise UserError(
            "INVALID_ARGUMENT",
            f"{snapshot.storage} is not clustered, so a full OPTIMIZE has no order to write its files in",
            hint="Name the columns: in SQL ALTER TABLE … CLUSTER BY (…), or use optimize(zorder_by=…).",
        )
    if cluster_by and (where is not None or zorder_by is not None):
        raise UserError(
            "INVALID_ARGUMENT",
            f"{snapshot.storage} is clustered by {', '.join(cluster_by)}, so OPTIMIZE takes no "
            f"{'predicate' if where is not None else 'ZORDER BY'}",
            hint="Leave it out, or end the clustering first: cluster_by([]), in SQL ALTER TABLE … CLUSTER BY NONE.",
        )
