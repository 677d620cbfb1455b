"""Joins small files, on request and by itself after a write.

The rule: files of one partition are joined in their order, and only where several become one, deleted rows go, or rules
leave paths to become columns now (`later`). With
`delta.autoOptimize.autoCompact` a write is followed by a second commit if a partition has many small files. That commit
changes no data and may fail: the write stands. Files of a clustered table are ordered by its columns instead, and those
that others clustered stay.

Source: delta-spark's OPTIMIZE and its auto compaction, whose default is 50 files below half of the target size.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import threads
from mica.arrays import arrow_array, scalar, to_numpy
from mica.engines.base import Engine, Task
from mica.errors import ConflictError
from mica.log import clustering
from mica.log.replay import partition_keys
from mica.log.snapshot import Snapshot
from mica.properties import AUTO_COMPACT, AUTO_OPTIMIZE, TARGET_FILE_SIZE
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.types import variant_columns
from mica.stats.partition import column_texts
from mica.tasks.ahead import readers_of
from mica.tasks.parts import FilePart
from mica.tasks.rewrite import RewriteSpec, join_files
from mica.tasks.shredding import LATER
from mica.tasks.write import WriteSpec
from mica.write import flow, zorder
from mica.write.commit import Commit
from mica.write.facts import Facts
from mica.write.once import Txn
from mica.write.target import Target, target_of

_LOG = logging.getLogger("mica")

#: A file of at least this share of the target size is large enough.
ENOUGH = 0.75

#: Files below this share of the target size are small, and so many of them in a partition are compacted by themselves.
SMALL, MANY = 0.5, 50

_PERCENTILES = {"minFileSize": 0, "p25FileSize": 0.25, "p50FileSize": 0.5, "p75FileSize": 0.75, "maxFileSize": 1}


def opened(
    snapshot: Snapshot, target_file_size: int | None, parameters: dict[str, Any], txn: Txn | None = None
) -> tuple[Target, WriteSpec]:
    """The table as the target of an OPTIMIZE, and the spec of its files."""
    target = target_of(snapshot, txn)
    spec = replace(target.write_spec(moment="again", target_file_size=target_file_size), data_change=False)
    target.operation, target.data_change = "OPTIMIZE", False
    target.parameters = {"predicate": [], "zOrderBy": [], "auto": False, **parameters}
    return target, spec


def scanned(engine: Engine, source: TableSource) -> Scan:
    """All rows of a table, with the settings of the engine."""
    return Scan(source, None, None, None, *engine.settings())


def joined(
    engine: Engine, scan: Scan, bins: Sequence[list[FilePart]], spec: WriteSpec
) -> tuple[flow.RowSource, WriteSpec]:
    """The files of each bin as one file, and the spec to write it."""
    read = scan.rewriting()
    # Cores that no bin has read for the others; requests wait for an object store, not for a core.
    idle = engine.parallelism // max(len(bins), 1)
    readers = min(max(idle, readers_of(scan.source.storage)), threads.REQUESTS)

    def task(write: WriteSpec) -> Task:
        return partial(join_files, RewriteSpec(read, write), readers=readers)

    # What came out a little larger than it was planned is not cut into a file and a rest.
    return flow.FromTasks(task, bins), replace(spec, target_file_size=spec.target_file_size * 3 // 2)


def rewritten(
    engine: Engine, target: Target, scan: Scan, bins: Sequence[list[FilePart]], keys: Sequence[str], spec: WriteSpec
) -> Commit:
    """Commits the files of each bin as one file, or with `keys` the rows of all in the order of these columns."""
    files = [file for some in bins for file in some]
    spec = target.rewriting_spec(spec, scan.timezone)
    target.metrics = partial(metrics, files)
    found = zorder.ordered(engine, scan, files, keys, spec) if keys else None
    if found is not None:
        target.removes = np.array([file.number for file in files], np.int64)
    source, spec = joined(engine, scan, bins, spec) if found is None else found
    done, _ = flow.commit(engine, target, spec, source)
    return done


def bins_of(files: Iterable[FilePart], size: int, again: Container[int] = frozenset()) -> Iterator[list[FilePart]]:
    """Files that become one: of one partition, in their order, together about as large as wanted. Those whose numbers
    are in `again` are written even alone, and however large they are."""

    def must(file: FilePart) -> bool:
        return file.deletion_vector is not None or file.number in again

    by_partition: dict[tuple[tuple[str, str | None], ...], list[FilePart]] = {}
    for file in files:
        if (file.size or 0) < size * ENOUGH or must(file):
            by_partition.setdefault(tuple(sorted(file.partition.items())), []).append(file)
    for some in by_partition.values():
        bins, together = list[list[FilePart]](), list[FilePart]()
        filled = 0
        for file in some:
            if together and filled + (file.size or 0) > size:
                bins.append(together)
                together, filled = [], 0
            together.append(file)
            filled += file.size or 0
        bins.append(together)
        yield from (some for some in bins if len(some) > 1 or any(map(must, some)))


def waiting(snapshot: Snapshot) -> frozenset[int]:
    """The numbers of files with paths that rules leave for later (`mica.shredding`)."""
    if not variant_columns(snapshot.schema):
        return frozenset()
    tagged = pc.is_valid(pc.map_lookup(snapshot.tags(), scalar(LATER), "first"))
    return frozenset(np.flatnonzero(to_numpy(tagged)).tolist())


def metrics(files: Sequence[FilePart], facts: Facts) -> dict[str, int]:
    """Sizes and numbers of the new files and of those that they replace, as delta-spark's OPTIMIZE has them."""
    sizes = np.sort(to_numpy(facts.files.column("size"))) if facts.files.num_rows else np.zeros(1, np.int64)
    return {
        "numAddedFiles": facts.files.num_rows,
        "numAddedBytes": facts.bytes,
        "numRemovedFiles": len(files),
        "numRemovedBytes": sum(file.size or 0 for file in files),
        "numDeletionVectorsRemoved": sum(file.deletion_vector is not None for file in files),
        **{name: int(sizes[int(share * (len(sizes) - 1))]) for name, share in _PERCENTILES.items()},
    }


def afterwards(done: Commit, engine: Engine) -> Commit:
    """The commit of a write; if the table asks for it and has many small files, after a second commit that joins them.
    `snapshot` is then that of the second one.
    """
    snapshot = done.snapshot
    if snapshot is None or done.repeated or not _asks(snapshot):
        return done
    try:
        keys = clustering.cluster_by(snapshot)
        chosen = _crowded(snapshot)
        if keys:
            chosen = chosen[clustering.may_cluster(snapshot, chosen)]
            chosen = chosen if len(chosen) >= MANY else chosen[:0]
        if not len(chosen):
            return done
        clustered = {"clusterBy": clustering.shown(keys)} if keys else {}
        target, spec = opened(snapshot, None, {"auto": True, **clustered})
        source = TableSource(snapshot)
        files = source.rewritten(chosen)
        spec = replace(spec, clustering_provider=clustering.PROVIDER) if keys else spec
        bins = [files] if keys else list(bins_of(files, spec.target_file_size))
        compacted = rewritten(engine, target, scanned(engine, source), bins, keys, spec)
    except ConflictError as error:
        _LOG.info("version %d of %s was not compacted: %s", done.version, snapshot.storage, error)
        return done
    except Exception as error:  # noqa: BLE001 - the write is committed, whatever happens to its compaction
        _LOG.warning("version %d of %s is committed, but was not compacted: %s", done.version, snapshot.storage, error)
        return done
    return replace(done, snapshot=compacted.snapshot)


def _asks(snapshot: Snapshot) -> bool:
    asked = AUTO_COMPACT.of(snapshot.properties)
    return AUTO_OPTIMIZE.of(snapshot.properties) if asked is None else asked != "false"


def _crowded(snapshot: Snapshot) -> np.ndarray:
    """The positions of the small files of partitions that have many of them."""
    sizes = to_numpy(snapshot.files.column("size"))
    small = np.flatnonzero(sizes < TARGET_FILE_SIZE.of(snapshot.properties) * SMALL)
    if len(small) < MANY:
        return small[:0]
    keys = partition_keys(snapshot.metadata, snapshot.protocol)
    values = snapshot.files.column("partition_values").take(arrow_array(small))
    columns = {str(i): column_texts(values, key) for i, key in enumerate(keys)}
    if not columns:
        return small
    rows = pa.table({**columns, "at": arrow_array(small)})
    counted = pc.grouped(rows, list(columns), [("at", "list"), ("at", "count")])
    crowded = counted.filter(pc.greater_equal(counted.column("at_count"), MANY)).column("at_list").combine_chunks()
    return np.sort(to_numpy(crowded.flatten()))
