"""Reads checkpoints: a version's whole state in one file or a few.

The rule: the columns that every plan needs are read immediately, statistics and tags only on request. Classic,
multi-part and V2 checkpoints (JSON or Parquet, with sidecars) give the same state (PROTOCOL.md "Checkpoints", "V2
spec").
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import from_numpy, one_array, to_numpy
from mica.errors import CorruptDataError, MicaError, StorageError
from mica.log.actions import Metadata, parse_line
from mica.log.json_lines import split_lines
from mica.log.listing import Checkpoint, ReplacedCheckpointError
from mica.log.paths import SIDECARS, decode_path
from mica.log.replay import (
    DELETION_VECTOR,
    PARTITION_VALUES,
    STATE_FILES,
    State,
    apply,
    apply_others,
    parse_commits,
    partition_keys,
)
from mica.records import dataclass
from mica.stats.read import Texts
from mica.storage import Storage
from mica.storage.range_file import RangeFile
from mica.variant import kernel
from mica.variant.kernel.reader import open_file

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_ADD = (
    ("path", "path", pa.string()),
    ("partition_values", "partitionValues", PARTITION_VALUES),
    ("size", "size", pa.int64()),
    ("modification_time", "modificationTime", pa.int64()),
    ("deletion_vector", "deletionVector", DELETION_VECTOR),
)
#: Rows of a column that are decoded at a time: so much memory is used again and again instead of new one.
_BATCH = 1 << 13
_OTHERS = ("protocol", "metaData", "txn", "domainMetadata", "sidecar", "checkpointMetadata")


@dataclass
class PartSource:
    """A Parquet part of a checkpoint, for the columns that are read later. `row` of a file is its row in the part."""

    storage: Storage
    rel: str
    size: int
    columns: frozenset[str]  # of `add`
    tag: str | None  # of the file whose rows these are (`Storage.tag`)
    _read: dict[str, pa.Array] = field(default_factory=dict, repr=False)

    def add_column(self, name: str) -> pa.Array | None:
        """Returns a column of `add` for all rows of the part, read once; None if the part does not have it."""
        if name not in self.columns:
            return None
        if name not in self._read:
            with _open(self.storage, self.rel, self.size, self.tag) as (file, _):
                values = _field(_column(file, "add", [name]), name, None)
                values.validate(full=True)
                kind = _as_instants(values.type, _int96_leaves(file), f"add.{name}")
                values = values if kind == values.type else values.cast(kind)
            self._read[name] = values  # not before the block's end, which finds out whether the file was replaced
        return self._read[name]

    def column_shares(self, name: str, rows: int) -> Iterator[tuple[int, int, Texts]]:
        """Yields a column of `add` in shares of about `rows` rows: the first row, how many, and what reads them, which
        any thread may call; nothing is kept. What cannot be read in shares is read in its turn."""
        request = kernel.Request(("add", name))
        try:
            file = None if self.storage.local_path is None else open_file(self.storage, self.rel)
            cuts = [] if file is None else _cuts(file, request, rows)
        except MicaError:
            file, cuts = None, []  # pyarrow reads it, or says what is wrong
        self._check()  # cuts of another file might leave rows out
        if file is None or not cuts:
            for start, values in self._batches(name, rows):
                yield start, len(values), partial(list, [values])
            return
        for start, end in cuts:
            yield start, end - start, partial(self._share, file, request, start, end)

    def _batches(self, name: str, rows: int) -> Iterator[tuple[int, pa.Array]]:
        with _open(self.storage, self.rel, self.size, self.tag) as (file, _):
            start = 0
            for batch in file.iter_batches(rows, columns=[f"add.{name}"]):
                values = _field(batch.column(0), name, None)
                values.validate(full=True)
                self._check()
                yield start, values
                start += len(values)
            if start != file.metadata.num_rows:
                raise ValueError(f"add has {start} rows, the file {file.metadata.num_rows}")

    def _share(self, file: kernel.FileReader, request: kernel.Request, start: int, end: int) -> Iterator[pa.Array]:
        done = start
        try:
            for batch in file.scan([request], ranges=[(start, end)], max_rows=_BATCH):
                self._check()
                yield batch.column(0)
                done += batch.num_rows
        except MicaError:
            values = self.add_column(request.column[-1])
            assert values is not None
            yield values.slice(done, end - done)

    def _check(self) -> None:
        _same(self.storage, self.rel, self.tag)

    def forget(self) -> None:
        """Frees the columns that were read."""
        self._read.clear()

    def removes(self) -> pa.StructArray | None:
        """The tombstones of the part as Arrow structs, with all columns."""
        with _open(self.storage, self.rel, self.size, self.tag) as (file, _):
            if "remove" not in file.schema_arrow.names:
                return None
            column = _column(file, "remove", None)
            column.validate(full=True)
            return column.filter(pc.is_valid(column))


def _cuts(file: kernel.FileReader, request: kernel.Request, rows: int) -> list[tuple[int, int]]:
    """The rows of the file in shares of about `rows`; none where one costs as much as all of a long row group."""
    groups = file.row_groups()
    cuts: list[tuple[int, int]] = []
    for start, count in zip(groups["first_row"].to_pylist(), groups["rows"].to_pylist(), strict=True):
        end = start + count
        if count > 2 * rows:
            one, every = (file.cost([request], ranges=[(start, to)])[3] for to in (start + 1, end))
            if one >= every:
                return []
        step = rows if count > 2 * rows else max(count, 1)
        cuts += [(at, min(at + step, end)) for at in range(start, end, step)]
    return cuts


@contextlib.contextmanager
def _open(storage: Storage, rel: str, size: int, tag: str | None = None) -> Iterator[tuple[pq.ParquetFile, str | None]]:
    """Opens a Parquet file of the log, the one with this tag or any if None, and returns its tag too. An error in its
    bytes inside the block becomes `CORRUPT_CHECKPOINT`, `ReplacedCheckpointError` if the file was replaced before the
    block's end."""
    import pyarrow.parquet as pq  # takes its time: most small tables have no checkpoint

    # INT96 holds the years 1 to 9999: as nanoseconds, which pyarrow makes of it, most of them become other years.
    parquet = partial(pq.ParquetFile, page_checksum_verification=True, coerce_int96_timestamp_unit="us")
    try:
        if storage.local_path is not None:
            tag = tag or storage.tag(rel)
            opened = parquet(storage.path(rel))
        else:
            bytes_ = RangeFile(storage, rel, size or storage.size(rel), tag)
            opened = parquet(bytes_, pre_buffer=True)
            tag = bytes_.tag
        with opened as file:
            yield file, tag
        _same(storage, rel, tag)
    except (
        pa.ArrowException, OSError, ValueError, KeyError, TypeError, MemoryError, OverflowError, MicaError,
    ) as error:  # fmt: skip
        _same(storage, rel, tag)
        if isinstance(error, StorageError) and error.code == "NOT_FOUND":
            raise _replaced(storage, rel) from None
        if isinstance(error, MicaError):
            raise
        raise _corrupt(storage, rel, error) from None


def _same(storage: Storage, rel: str, tag: str | None) -> None:
    """Raises if the file is another one by now. An object store knows it when it is asked for the bytes."""
    try:
        found = storage.tag(rel)
    except StorageError as error:
        if error.code != "NOT_FOUND":
            raise
        raise _replaced(storage, rel) from None
    if found not in (None, tag):
        raise _replaced(storage, rel)


def _replaced(storage: Storage, rel: str) -> ReplacedCheckpointError:
    return ReplacedCheckpointError(
        "CORRUPT_CHECKPOINT",
        f"{storage.path(rel)} is not the checkpoint any more that was read: it is missing or was replaced",
        # For a table that is kept while another process cleans up its log.
        hint="Open the table again. If that fails too, restore the file, or delete the checkpoint that it belongs to, "
        "if the commits before it still exist.",
        path=storage.path(rel),
    )


def _corrupt(storage: Storage, rel: str, error: object) -> CorruptDataError:
    reason = str(error).partition("\n")[0]
    return CorruptDataError(
        "CORRUPT_CHECKPOINT",
        f"{storage.path(rel)} is not a readable checkpoint: {reason}",
        hint="Delete it if the commits before it still exist.",
        path=storage.path(rel),
    )


def _column(
    file: pq.ParquetFile, name: str, children: Sequence[str] | None, groups: Sequence[int] | None = None
) -> pa.StructArray:
    columns = [name] if children is None else [f"{name}.{child}" for child in children]
    if groups is None or len(groups) == file.num_row_groups:
        table, rows = file.read(columns=columns, use_threads=True), file.metadata.num_rows
    else:
        table = file.read_row_groups(groups, columns=columns, use_threads=True)
        rows = sum(file.metadata.row_group(group).num_rows for group in groups)
    # Columns are aligned by row number: a column that lost rows would return those of other files.
    if len(table[name]) != rows:
        raise ValueError(f"{name} has {len(table[name])} rows, the file {rows}")
    return one_array(table[name])


def _field(array: pa.StructArray, name: str, kind: pa.DataType | None) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise ValueError(f"{array.type} is not a struct with {name}")
    if array.type.get_field_index(name) < 0:
        return pa.nulls(len(array), kind)
    # struct_field keeps the parent's nulls; `flatten` of single children would not.
    values = pc.struct_field(array, name)
    return values if kind is None or values.type == kind else conform(values, kind)


def _int96_leaves(file: pq.ParquetFile) -> frozenset[str]:
    """The paths of leaves that are INT96: Spark writes instants so, and TIMESTAMP_NTZ as INT64."""
    leaves = (file.schema.column(number) for number in range(len(file.schema)))
    return frozenset(leaf.path for leaf in leaves if leaf.physical_type == "INT96")


def _as_instants(kind: pa.DataType, leaves: frozenset[str], path: str) -> pa.DataType:
    """The type at a path with these leaves as instants in UTC, for which INT96 has no mark."""
    if pa.types.is_struct(kind):
        inside = ((child, _as_instants(child.type, leaves, f"{path}.{child.name}")) for child in kind)
        return pa.struct([child.with_type(found) for child, found in inside])
    return pa.timestamp("us", "UTC") if path in leaves and pa.types.is_timestamp(kind) else kind


def conform(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Converts values to another struct type: children by name, missing ones null, extra ones omitted."""
    if pa.types.is_struct(kind):
        children = [_field(values, child.name, child.type) for child in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=pc.is_null(values))
    return values.cast(kind)


def read_checkpoint(storage: Storage, checkpoint: Checkpoint) -> State:
    """Reads the state of a checkpoint. An unreadable file raises `CorruptDataError` (code `CORRUPT_CHECKPOINT`)."""
    state = State()
    sidecars: list[dict[str, Any]] = []
    for entry in checkpoint.entries:
        if entry.path.endswith(".json"):
            state = _read_json(storage, entry.path, state, sidecars)
        else:
            state = read_part(storage, entry.path, entry.size, state, sidecars)
    for sidecar in sidecars:
        name = _sidecar(sidecar)
        holder, rel = storage.locate(name)
        size = sidecar.get("sizeInBytes")
        state = read_part(holder, rel, size if isinstance(size, int) else 0, state, [])
    if state.protocol is None or state.metadata is None:
        raise _corrupt(storage, checkpoint.entries[0].path, "it holds no protocol or no metaData")
    return state


def sidecars_of(storage: Storage, checkpoint: Checkpoint) -> set[str]:
    """Returns the sidecar files that a V2 checkpoint names. Reading them also proves that its own files are intact."""
    found: list[dict[str, Any]] = []
    for entry in checkpoint.entries:
        if entry.path.endswith(".json"):
            lines, _ = split_lines(storage.read(entry.path))
            actions = (parse_line(line.as_buffer().to_pybytes()).get("sidecar") for line in lines)
            found += [action for action in actions if isinstance(action, dict)]
            continue
        with _open(storage, entry.path, entry.size) as (file, _):
            names = [name for name in ("sidecar",) if name in file.schema_arrow.names]
            found += [action["sidecar"] for _, action in _read_others(file, names, _held_leaves(storage, entry.path))]
    return {_sidecar(action) for action in found}


def _sidecar(action: Mapping[str, Any]) -> str:
    name = decode_path(str(action.get("path", "")))
    return name if "/" in name else f"{SIDECARS}/{name}"


def _read_json(storage: Storage, rel: str, state: State, sidecars: list[dict[str, Any]]) -> State:
    data = storage.read(rel)
    lines, _ = split_lines(data)
    kinds = [parse_line(line.as_buffer().to_pybytes()) for line in lines]
    named = [line["sidecar"] for line in kinds if line.get("sidecar") is not None]
    if not all(isinstance(sidecar, dict) for sidecar in named):
        raise _corrupt(storage, rel, "a sidecar is no object")  # whose files would be missing
    sidecars += named
    keys = [key for line in kinds if "metaData" in line for key in partition_keys(Metadata.parse(line["metaData"]))]
    return apply(state, parse_commits([data], keys, storage.path(rel)))


def read_part(storage: Storage, rel: str, size: int, state: State, sidecars: list[dict[str, Any]]) -> State:
    """Adds the actions of one Parquet file to the state, and the sidecars that it names to `sidecars`."""
    with _open(storage, rel, size) as (file, tag):
        schema = file.schema_arrow
        held = _held_leaves(storage, rel)
        others = _read_others(file, [name for name in _OTHERS if name in schema.names], held)
        sidecars += [action["sidecar"] for _, action in others if "sidecar" in action]
        state = apply_others(state, others)
        kind = schema.field("add").type if "add" in schema.names else None
        if kind is None or not pa.types.is_struct(kind) or kind.get_field_index("path") < 0:
            # No files: a source of tombstones alone, or nothing.
            only_gone = (PartSource(storage, rel, size, frozenset(), tag),) if "remove" in schema.names else ()
            return replace(state, sources=(*state.sources, *only_gone))
        names = [name for _, name, _ in _ADD if kind.get_field_index(name) >= 0]
        if not _groups(file, held, "add.deletionVector"):
            names = [name for name in names if name != "deletionVector"]  # no file has one
        adds = _column(file, "add", names)
        rows = np.flatnonzero(to_numpy(pc.is_valid(pc.struct_field(adds, "path"))))
        # Writers keep the adds together: a slice is free, a take copies them all.
        together = len(rows) > 0 and int(rows[-1] - rows[0]) + 1 == len(rows)
        found = adds.slice(int(rows[0]), len(rows)) if together else adds.take(from_numpy(rows))
        columns = {ours: _field(found, name, wanted) for ours, name, wanted in _ADD}
        columns["deletion_vector"] = _without_hollow(columns["deletion_vector"])
        columns["source"] = from_numpy(np.full(len(rows), len(state.sources), np.int32))
        columns["row"] = from_numpy(rows.astype(np.int32))
        part = pa.table(columns, schema=STATE_FILES)
        part.validate(full=True)  # damaged pages can hold invalid text
        if part.column("size").null_count:
            raise _corrupt(storage, rel, "it adds a file without a size")
    source = PartSource(storage, rel, size, frozenset(child.name for child in kind), tag)
    return replace(state, files=pa.concat_tables([state.files, part]), sources=(*state.sources, source))


def _without_hollow(vectors: pa.StructArray) -> pa.StructArray:
    """Replaces the struct of nulls, which some writers use for a missing deletion vector, by null."""
    kinds = pc.struct_field(vectors, "storageType")
    if kinds.null_count == vectors.null_count:
        return vectors
    children = [pc.struct_field(vectors, [i]) for i in range(vectors.type.num_fields)]
    return pa.StructArray.from_arrays(children, fields=list(vectors.type), mask=pc.is_null(kinds))


def _held_leaves(storage: Storage, rel: str) -> list[list[str]]:
    """Per row group the leaves that may hold something, by the footer; none where it is not known. pyarrow's statistics
    end the process if the footer is damaged; the kernel looks at it first."""
    try:
        # What an object store holds of the other leaves takes no longer than another request.
        return [] if storage.local_path is None else open_file(storage, rel).held_leaves()
    except MicaError:
        return []


def _groups(file: pq.ParquetFile, held: list[list[str]], name: str) -> list[int]:
    """The row groups in which the struct may hold something."""
    if len(held) != file.num_row_groups:
        return list(range(file.num_row_groups))
    return [number for number, leaves in enumerate(held) if any(leaf.startswith(f"{name}.") for leaf in leaves)]


def _read_others(file: pq.ParquetFile, names: list[str], held: list[list[str]]) -> list[tuple[int, dict[str, Any]]]:
    """Reads the few actions other than files, from the row groups that may hold one."""
    out: list[tuple[int, dict[str, Any]]] = []
    for name in names:
        groups = _groups(file, held, name)
        if not groups:
            continue
        column = _column(file, name, None, groups)
        # A null struct may be read as a struct of nulls if the writer made the struct required.
        rows = column.filter(pc.is_valid(column)).to_pylist(maps_as_pydicts="lossy")
        actions = ({key: value for key, value in row.items() if value is not None} for row in rows)
        out += [(0, {name: action}) for action in actions if action]
    return out
