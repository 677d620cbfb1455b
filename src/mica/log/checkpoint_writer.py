"""Writes checkpoints, a snapshot's whole state, and `_last_checkpoint`.

The rule: a checkpoint is written after its commit, and may fail without harm: a part of it that nothing names is
garbage. `delta.checkpointPolicy` decides its form.

    classic    <version>.checkpoint.parquet, all actions
    v2         <version>.checkpoint.<uuid>.parquet, all actions but those of files
               └── _sidecars/<uuid>.parquet, the files: up to `SIDECAR_FILES` each, written in parallel

Source: PROTOCOL.md, "Checkpoints", "V2 Spec", "Sidecar Files", "Last Checkpoint File".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from mica import late, properties
from mica.arrays import arrow_array, to_numpy
from mica.cores import cores
from mica.log import features
from mica.log.checkpoint import PartSource
from mica.log.checkpoint_rows import added_files, checkpoint_table, other_actions, removed_files, rows_of, stats_kind
from mica.log.paths import LAST_CHECKPOINT, SIDECARS, checkpoint_name, commit_name, v2_checkpoint_name
from mica.log.snapshot import Snapshot, last_checkpoint
from mica.log.tombstones import REMOVE
from mica.schema.arrow import is_variant
from mica.variant import kernel

#: Files of the table in one sidecar: bounds the memory that one needs.
SIDECAR_FILES = 50_000
#: Rows of a row group: readers take several at once.
_GROUP_ROWS = 1 << 17
#: Sidecars written at the same time.
_WRITERS = min(4, cores())

_TAGS = pa.map_(pa.string(), pa.string())
_SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _TAGS)]
)
_CHECKPOINT = pa.struct([("version", pa.int64()), ("tags", _TAGS)])


def write_checkpoint(snapshot: Snapshot, *, now: int | None = None) -> int:
    """Writes the checkpoint of a snapshot and `_last_checkpoint`, unless that names a newer one; returns the number of
    its actions. `now` in ms.
    """
    now = int(time.time() * 1000) if now is None else now
    policy = properties.CHECKPOINT_POLICY.of(snapshot.properties)
    is_v2 = policy == "v2" and features.supports(snapshot.protocol, "v2Checkpoint")
    actions, size = _write_v2(snapshot, now) if is_v2 else _write_classic(snapshot, now)
    pointer = {
        "version": snapshot.version,
        "size": actions,
        "sizeInBytes": size,
        "numOfAddFiles": snapshot.state.files.num_rows,
    }
    if not _is_newer_named(snapshot):
        snapshot.storage.put(LAST_CHECKPOINT, orjson.dumps(pointer))
    return actions


def _is_newer_named(snapshot: Snapshot) -> bool:
    """Whether `_last_checkpoint` names a newer version, since this one is an old one or took longer than another
    writer's. The pointer stays then: readers list the log from there. That of a table that was here before may go."""
    named = last_checkpoint(snapshot.storage)
    return named is not None and named > snapshot.version and snapshot.storage.exists(commit_name(named))


def _write_classic(snapshot: Snapshot, now: int) -> tuple[int, int]:
    """Returns the number of actions and of bytes."""
    table = checkpoint_table(snapshot, now=now)
    data = parquet_bytes(table)
    snapshot.storage.put(checkpoint_name(snapshot.version), data)
    return table.num_rows, len(data)


def _write_v2(snapshot: Snapshot, now: int) -> tuple[int, int]:
    """Returns the number of actions and of bytes, with those in sidecars."""
    storage = snapshot.storage
    named: list[str] = []

    def write(add: pa.Array, remove: pa.Array) -> tuple[int, dict[str, Any]]:
        name = f"{uuid.uuid4()}.parquet"
        named.append(name)
        data = parquet_bytes(rows_of({"add": add, "remove": remove}))
        storage.put(f"{SIDECARS}/{name}", data)
        return len(add) + len(remove), {"path": name, "sizeInBytes": len(data), "modificationTime": now}

    try:
        written = _write_sidecars(snapshot, now, write)
        sidecars = [action for _, action in written]
        table = rows_of(
            {
                "checkpointMetadata": arrow_array([{"version": snapshot.version}], _CHECKPOINT),
                **other_actions(snapshot, now),
                "sidecar": arrow_array(sidecars, _SIDECAR),
                # delta-spark wants these columns in every file.
                "add": added_files(snapshot, np.array([], np.int64), stats_kind(snapshot, [])),
                "remove": arrow_array([], REMOVE),
            }
        )
        data = parquet_bytes(table)
    except BaseException:
        storage.discard(f"{SIDECARS}/{name}" for name in named)
        raise
    # If this fails, the checkpoint may be there all the same, or come later: a cleanup deletes what none names.
    storage.put(v2_checkpoint_name(snapshot.version, str(uuid.uuid4())), data)
    actions = table.num_rows + sum(count for count, _ in written)
    return actions, len(data) + sum(action["sizeInBytes"] for action in sidecars)


def _write_sidecars(
    snapshot: Snapshot, now: int, write: Callable[[pa.Array, pa.Array], tuple[int, dict[str, Any]]]
) -> list[tuple[int, dict[str, Any]]]:
    """Writes all actions of files, a sidecar at a time; returns what `write` returned."""
    # The files of one source come together, and what was read of it is forgotten after its last file. The caller's
    # snapshot does not grow.
    state = snapshot.state
    sources = tuple(replace(s, _read={}) if isinstance(s, PartSource) else s for s in state.sources)
    snapshot = snapshot.with_state(replace(state, sources=sources))
    places = to_numpy(state.files["source"])
    order = np.argsort(places, kind="stable")
    parts = [order[at : at + SIDECAR_FILES] for at in range(0, len(order), SIDECAR_FILES)]

    def forget(upto: int) -> None:
        for source in sources[:upto]:
            if isinstance(source, PartSource):
                source.forget()

    kind = stats_kind(snapshot, parts)
    none = added_files(snapshot, order[:0], kind), arrow_array([], REMOVE)
    written: list[tuple[int, dict[str, Any]]] = []
    with late.futures.ThreadPoolExecutor(_WRITERS, thread_name_prefix="mica") as pool:
        for at in range(0, len(parts), _WRITERS):
            wave = parts[at : at + _WRITERS]
            written += pool.map(lambda rows: write(added_files(snapshot, rows, kind), none[1]), wave)
            forget(int(places[wave[-1][-1]]))
        gone = removed_files(snapshot, now)
        slices = [gone.slice(at, SIDECAR_FILES) for at in range(0, len(gone), SIDECAR_FILES)]
        written += pool.map(lambda some: write(none[0], some), slices)
    return written


def parquet_bytes(table: pa.Table) -> bytes:
    """Encodes a part of a checkpoint as Parquet, with the standard names of list and map children."""
    if _holds_variants(table.schema):
        # Only the kernel can mark a group as VARIANT in a Parquet schema.
        writer = kernel.FileWriter(table.schema, compression="snappy")
        for batch in table.to_batches():
            writer.write(batch)
        writer.close()
        return bytes(writer.take_bytes())
    import pyarrow.parquet as pq  # takes its time: most commits write no checkpoint

    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, compression="snappy", use_compliant_nested_type=True, store_schema=False, write_page_checksum=True,
        row_group_size=_GROUP_ROWS, write_page_index=True,
    )  # fmt: skip
    return bytes(sink.getvalue().to_pybytes())


def _holds_variants(schema: pa.Schema) -> bool:
    kind = schema.field("add").type if "add" in schema.names else pa.struct([])
    return kind.get_field_index("stats_parsed") >= 0 and _is_or_holds_variant(kind.field("stats_parsed"))


def _is_or_holds_variant(field: pa.Field) -> bool:
    if not pa.types.is_struct(field.type):
        return False
    return is_variant(field) or any(_is_or_holds_variant(child) for child in field.type)
