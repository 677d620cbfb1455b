"""The answer of OPTIMIZE: one row, with the table's path and what was done to its files.

The rule: columns and fields have the names and types of delta-spark's answer, for programs that read
`metrics.numFilesAdded`; what only delta-spark's way of working has is null. Behind them are, for one version more, the
names that `metrics` had when it was a map.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import batch_of
from mica.log.snapshot import Snapshot
from mica.schema.arrow import to_arrow
from mica.schema.ddl import parse_ddl
from mica.write.commit import Commit

_FILES = "STRUCT<min: BIGINT, max: BIGINT, avg: DOUBLE, totalFiles: BIGINT, totalSize: BIGINT>"
_SOME, _FEW = "STRUCT<num: BIGINT, size: BIGINT>", "STRUCT<numFiles: BIGINT, size: BIGINT>"
_ZORDER = (
    f"strategyName: STRING, inputCubeFiles: {_SOME}, inputOtherFiles: {_SOME}, inputNumCubes: BIGINT, "
    f"mergedFiles: {_SOME}, numOutputCubes: BIGINT, mergedNumCubes: BIGINT"
)
_CLUSTERING = (
    f"inputZCubeFiles: {_FEW}, inputOtherFiles: {_FEW}, inputNumZCubes: BIGINT, mergedFiles: {_FEW}, "
    "numOutputZCubes: BIGINT"
)
_PARALLELISM = ", ".join(f"{one}Parallelism: BIGINT" for one in (
    "maxClusterActive", "minClusterActive", "maxSessionActive", "minSessionActive"
))  # fmt: skip
_METRICS = (
    f"numFilesAdded: BIGINT, numFilesRemoved: BIGINT, filesAdded: {_FILES}, filesRemoved: {_FILES}, "
    f"partitionsOptimized: BIGINT, zOrderStats: STRUCT<{_ZORDER}>, clusteringStats: STRUCT<{_CLUSTERING}>, "
    "numBins: BIGINT, numBatches: BIGINT, totalConsideredFiles: BIGINT, totalFilesSkipped: BIGINT, "
    "preserveInsertionOrder: BOOLEAN, numFilesSkippedToReduceWriteAmplification: BIGINT, "
    "numBytesSkippedToReduceWriteAmplification: BIGINT, startTimeMs: BIGINT, endTimeMs: BIGINT, "
    "totalClusterParallelism: BIGINT, totalScheduledTasks: BIGINT, "
    f"autoCompactParallelismStats: STRUCT<{_PARALLELISM}>, "
    "deletionVectorStats: STRUCT<numDeletionVectorsRemoved: BIGINT, numDeletionVectorRowsRemoved: BIGINT>, "
    "numTableColumns: BIGINT, numTableColumnsWithStats: BIGINT"
)

#: The names of before.
FORMER = ("numAddedFiles", "numAddedBytes", "numRemovedFiles", "numRemovedBytes", "numDeletionVectorsRemoved")


def optimized(path: str, before: Snapshot, done: Commit, considered: int) -> pa.Table:
    """The answer; `before` is the version that was optimized, `considered` its files that WHERE leaves."""
    after = before if done.snapshot is None else done.snapshot
    added, removed = _beside(after, before), _beside(before, after)
    metrics: dict[str, Any] = {
        "numFilesAdded": done.metrics.get("numAddedFiles", 0),
        "numFilesRemoved": done.metrics.get("numRemovedFiles", 0),
        "filesAdded": _sizes(added),
        "filesRemoved": _sizes(removed),
        "partitionsOptimized": len(set(map(str, removed.column("partition_values").to_pylist()))),
        "totalConsideredFiles": considered,
        "totalFilesSkipped": max(0, considered - done.metrics.get("numRemovedFiles", 0)),
        "preserveInsertionOrder": False,
        "numTableColumns": len(after.schema.fields),
    }
    if done.metrics.get("numDeletionVectorsRemoved"):
        metrics["deletionVectorStats"] = {"numDeletionVectorsRemoved": done.metrics["numDeletionVectorsRemoved"]}
    metrics |= {name: done.metrics.get(name) for name in FORMER}
    former = ", ".join(f"{name}: BIGINT" for name in FORMER)
    schema = to_arrow(parse_ddl(f"path STRING, metrics STRUCT<{_METRICS}, {former}>"))
    return pa.Table.from_batches([batch_of([{"path": path, "metrics": metrics}], schema)])


def _beside(one: Snapshot, other: Snapshot) -> pa.Table:
    """The files that only one of two versions has."""
    files = pa.table({name: one.files.column(name) for name in ("path", "size", "partition_values")})
    return files.filter(pc.invert(pc.is_in(files.column("path"), pc.unique(other.files.column("path")))))


def _sizes(files: pa.Table) -> dict[str, Any]:
    sizes = pc.fill_null(files.column("size"), 0)
    ends, total = pc.min_max(sizes).as_py(), pc.sum(sizes).as_py() or 0
    mean = total / len(sizes) if len(sizes) else 0.0
    return {**ends, "avg": mean, "totalFiles": len(sizes), "totalSize": total}
