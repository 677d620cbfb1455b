"""Action reconciliation: a state plus commits gives the next state.

The rule (PROTOCOL.md "Action Reconciliation"): the last add or remove of a logical file, keyed by path and deletion
vector, decides whether the file is in the table. Files stay in Arrow tables: pyarrow's JSON reader parses all lines
at once, dictionary codes reconcile them, and only lines of other actions become Python objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, from_numpy, no_rows, one_array, to_numpy
from mica.errors import CorruptDataError
from mica.log.actions import Metadata, Protocol, parse_line
from mica.log.arrays import grown
from mica.log.column_mapping import mode_of
from mica.log.commit_info import in_commit_timestamp
from mica.log.json_lines import BrokenLinesError, joined, read_lines, split_lines
from mica.log.line_source import LineSource, with_source
from mica.log.paths import file_keys
from mica.properties import COLUMN_MAPPING_MODE
from mica.records import dataclass
from mica.stats.columns import PHYSICAL_NAME

DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ]
)
PARTITION_VALUES = pa.map_(pa.string(), pa.string())

# The public columns of a file, also used by plans. `source` and `row` locate its statistics, tags and other columns,
# which are read on request.
FILES = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", PARTITION_VALUES),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("deletion_vector", DELETION_VECTOR),
    ]
)
STATE_FILES = pa.schema([*FILES, ("source", pa.int32()), ("row", pa.int32())])
REMOVES = pa.schema([("path", pa.string()), ("deletion_vector", DELETION_VECTOR), ("line", pa.large_binary())])


@dataclass(frozen=True)
class Commits:
    """The parsed lines of one or more commits, oldest first."""

    lines: pa.Array  # large_binary, one action each
    adds: pa.Table  # FILES, aligned with add_rows
    add_rows: np.ndarray  # the line of each add
    stats: pa.Array  # string, aligned with adds
    data_change: pa.Array  # boolean, aligned with adds
    removes: pa.Table  # path, deletion_vector, aligned with remove_rows
    remove_rows: np.ndarray
    others: list[tuple[int, dict[str, Any]]]  # (line, action) of all other actions, without change files


@dataclass(frozen=True)
class State:
    """A version's content. `sources[i]` is what `source` of a file refers to: a LineSource or a checkpoint part."""

    files: pa.Table = field(default_factory=partial(no_rows, STATE_FILES))
    removes: pa.Table = field(default_factory=partial(no_rows, REMOVES))  # since the checkpoint
    sources: tuple[Any, ...] = ()
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)  # appId → version, lastUpdated
    domains: Mapping[str, str] = field(default_factory=dict)  # domain → configuration
    in_commit_timestamp: int | None = None  # of the last commit


def parse_commits(chunks: Sequence[bytes], partition_columns: Iterable[str], name: str) -> Commits:
    """Parses commits, oldest first. `partition_columns` are the known keys of partition values (`partition_keys`);
    those of metaData lines in the commits are found here. `name` names the input in errors."""
    data = joined(chunks)
    lines, longest = split_lines(data)
    found = _partition_columns(data, lines)
    needed = found[-1] if found else list(partition_columns)
    also = [name for names in found for name in names] + _display_names(data, lines)
    columns = list(dict.fromkeys([*needed, *partition_columns, *also]))
    try:
        table = read_lines(data, lines, longest, _json_schema(columns))
    except BrokenLinesError as error:
        raise CorruptDataError("CORRUPT_LOG", f"{name} cannot be used: {error}", hint="Restore the file.") from None
    add, remove = one_array(table["add"]), one_array(table["remove"])
    is_add = to_numpy(pc.is_valid(add))
    is_remove = to_numpy(pc.is_valid(remove))
    add_rows, remove_rows = np.flatnonzero(is_add), np.flatnonzero(is_remove)
    added, removed = pc.take(add, from_numpy(add_rows)), pc.take(remove, from_numpy(remove_rows))
    _require_paths(added, name)
    if pc.struct_field(added, "size").null_count:
        raise CorruptDataError("CORRUPT_LOG", f"{name} holds an add without a size", hint="Restore the file.")
    _require_paths(removed, name)
    adds = pa.table(
        [
            pc.struct_field(added, "path"),
            partition_map(added, columns, len(set(needed))),
            pc.struct_field(added, "size"),
            pc.struct_field(added, "modificationTime"),
            pc.struct_field(added, "deletionVector"),
        ],
        schema=FILES,
    )
    removes = pa.table(
        [pc.struct_field(removed, "path"), pc.struct_field(removed, "deletionVector")],
        names=["path", "deletion_vector"],
    )
    rest = np.flatnonzero(~(is_add | is_remove | _are_changes(data, lines)))
    others = [(int(row), parse_line(lines[int(row)].as_buffer().to_pybytes())) for row in rest]
    stats, change = pc.struct_field(added, "stats"), pc.struct_field(added, "dataChange")
    return Commits(lines, adds, add_rows, stats, change, removes, remove_rows, others)


def _are_changes(data: bytes, lines: pa.Array) -> np.ndarray:
    """Marks the change files: a commit may have thousands, and they are no part of a table's state."""
    if b'"cdc"' not in data:
        return np.zeros(len(lines), bool)
    return to_numpy(pc.match_substring_regex(lines, r'^\s*\{\s*"cdc"\s*:'))


def _require_paths(actions: pa.StructArray, name: str) -> None:
    """Checks that the keys that identify a file are present."""
    paths = pc.struct_field(actions, "path")
    if paths.null_count:
        raise CorruptDataError("CORRUPT_LOG", f"{name} holds an add or remove without a path", hint="Restore the file.")
    vectors = pc.struct_field(actions, "deletionVector")
    named = pc.and_(*(pc.is_valid(pc.struct_field(vectors, part)) for part in ("storageType", "pathOrInlineDv")))
    if pc.any(pc.and_not(pc.is_valid(vectors), named)).as_py():
        # Without it the deleted rows would reappear.
        raise CorruptDataError(
            "CORRUPT_LOG", f"{name} holds a deletion vector without a path", hint="Restore the file."
        )


def _partition_columns(data: bytes, lines: pa.Array) -> list[list[str]]:
    """Returns the keys of each metaData action; they must be known before the files are parsed."""
    if b'"metaData"' not in data:
        return []
    found = []
    for line in _metadata_lines(lines):
        action = parse_line(line.as_buffer().to_pybytes()).get("metaData")
        if isinstance(action, dict):
            found.append(partition_keys(Metadata.parse(action)))
    return found


def _metadata_lines(lines: pa.Array) -> pa.Array:
    return pc.filter(lines, pc.match_substring(lines, b'"metaData"'))


def _display_names(data: bytes, lines: pa.Array) -> list[str]:
    """Returns the partition columns by display names, for metaData actions of tables without column mapping."""
    if COLUMN_MAPPING_MODE.name.encode() not in data:
        return []
    actions = (parse_line(line.as_buffer().to_pybytes()).get("metaData") for line in _metadata_lines(lines))
    return [name for action in actions if isinstance(action, dict) for name in Metadata.parse(action).partition_columns]


def partition_keys(metadata: Metadata, protocol: Protocol | None = None) -> list[str]:
    """Returns the keys of `partitionValues`: the partition columns, by physical names under column mapping
    (PROTOCOL.md "Column Mapping"); without a protocol the property alone decides."""
    columns = list(dict.fromkeys(metadata.partition_columns))
    if protocol is None:
        mapped = COLUMN_MAPPING_MODE.of(metadata.configuration) != "none"
    else:
        mapped = mode_of(protocol, metadata) != "none"
    if not columns or not mapped:
        return columns
    physical = {}
    fields = parse_line(metadata.schema_string).get("fields")
    for field_ in fields if isinstance(fields, list) else ():
        if isinstance(field_, dict) and isinstance(field_.get("metadata"), dict):
            physical[field_.get("name")] = field_["metadata"].get(PHYSICAL_NAME)
    return [str(physical.get(name) or name) for name in columns]


def _json_schema(columns: list[str]) -> pa.Schema:
    common = [("path", pa.string()), ("deletionVector", DELETION_VECTOR)]
    add = [*common, ("size", pa.int64()), ("modificationTime", pa.int64()), ("stats", pa.string())]
    add.append(("dataChange", pa.bool_()))
    if columns:
        add.append(("partitionValues", pa.struct([(column, pa.string()) for column in columns])))
    return pa.schema([("add", pa.struct(add)), ("remove", pa.struct(common))])


def partition_map(adds: pa.StructArray, columns: list[str], needed: int) -> pa.MapArray:
    """struct<a, b> → map<string, string>. The first `needed` columns become keys of every file, null or not (other
    readers look them up); the others, of an earlier partitioning, are keys of the files that have a value of them: in a
    file of today's, deltalake refuses the table for them. A key with a null value and a missing key mean the same
    (PROTOCOL.md "Partition Value Serialization")."""
    count = len(adds)
    if not columns:
        nothing = pa.nulls(0, pa.string())
        return pa.MapArray.from_arrays(from_numpy(np.zeros(count + 1, np.int32)), nothing, nothing)
    values = pc.struct_field(adds, "partitionValues")
    fields = [pc.struct_field(values, [i]) for i in range(len(columns))]
    used = [i for i, column in enumerate(fields) if i < needed or column.null_count < count]
    width = len(used)
    offsets = from_numpy(np.arange(count + 1, dtype=np.int32) * width)
    keys = from_numpy(np.tile(np.arange(width, dtype=np.int32), count))
    order = np.arange(count * width, dtype=np.int64)
    flat = pa.concat_arrays([fields[i] for i in used]) if used else pa.nulls(0, pa.string())
    if width > 1:
        flat = flat.take(from_numpy((order % width) * count + order // width))
    names = arrow_array([columns[i] for i in used], pa.string())
    if width > needed:
        kept = (np.arange(count * width) % width < needed) | to_numpy(flat.is_valid())
        offsets = from_numpy(np.append(0, kept.reshape(count, width).sum(1).cumsum()).astype(np.int32))
        keys, flat = (pc.filter(one, from_numpy(kept)) for one in (keys, flat))
    return pa.MapArray.from_arrays(offsets, names.take(keys), flat)


def apply(state: State, commits: Commits) -> State:
    """Returns the state after more commits."""
    state = apply_others(state, commits.others)
    if not len(commits.add_rows) and not len(commits.remove_rows):
        return state
    add_rows, remove_rows = commits.add_rows, commits.remove_rows
    dv_adds, dv_removes = (one_array(t["deletion_vector"]) for t in (commits.adds, commits.removes))
    keys = pa.concat_arrays(
        [
            file_keys(one_array(commits.adds["path"]), dv_adds),
            file_keys(one_array(commits.removes["path"]), dv_removes),
        ]
    )
    is_last = _is_last(keys, np.concatenate((add_rows, remove_rows)))
    kept, fresh = np.flatnonzero(is_last[: len(add_rows)]), np.flatnonzero(is_last[len(add_rows) :])
    files, sources, number, first = _without(state.files, keys), state.sources, 0, 0
    if len(add_rows):
        files, sources, number, first = with_source(files, sources, LineSource(commits.lines, add_rows, commits.stats))
    new = pc.take(commits.adds, from_numpy(kept))
    new = new.append_column("source", from_numpy(np.full(len(kept), number, np.int32)))
    new = new.append_column("row", from_numpy((kept + first).astype(np.int32)))
    removed = pc.take(commits.removes, from_numpy(fresh)).append_column(
        "line", pc.take(commits.lines, from_numpy(remove_rows[fresh]))
    )
    return replace(
        state,
        files=grown(files, pc.cast_rows(new, STATE_FILES)),
        removes=grown(_without(state.removes, keys), pc.cast_rows(removed, REMOVES)),
        sources=sources,
    )


def _is_last(keys: pa.Array, lines: np.ndarray) -> np.ndarray:
    """Which of these actions is the last one of its logical file; `lines` are their places in the commits."""
    files = to_numpy(pc.dictionary_encode(keys).indices)
    order = np.argsort(lines, kind="stable")
    last = np.empty(int(files.max()) + 1, np.int64)
    last[files[order]] = lines[order]  # for a repeated index the last assignment wins
    found: np.ndarray = last[files] == lines
    return found


def _without(files: pa.Table, keys: pa.Array) -> pa.Table:
    """The rows of other logical files. Most commits name none that is there, and then nothing is copied."""
    batches = files.to_batches()
    named = [pc.is_in(file_keys(b.column("path"), b.column("deletion_vector")), value_set=keys) for b in batches]
    if not any(pc.any(mask).as_py() for mask in named):
        return files
    kept = [pc.filter(batch, pc.invert(mask)) for batch, mask in zip(batches, named, strict=True)]
    return pa.Table.from_batches(kept, files.schema)


def _whole(action: Mapping[str, Any], name: str) -> int:
    value = action.get(name)
    if not isinstance(value, int):
        raise CorruptDataError("CORRUPT_LOG", f"an action of the log has the {name} {value!r}", hint="Restore the log.")
    return value


def apply_others(state: State, others: Iterable[tuple[int, dict[str, Any]]]) -> State:
    """Returns the state after more actions other than files."""
    protocol, metadata, timestamp = state.protocol, state.metadata, state.in_commit_timestamp
    transactions, domains = dict(state.transactions), dict(state.domains)
    for _, line in others:
        for kind, action in line.items():
            if not isinstance(action, dict):
                continue
            if kind == "commitInfo":
                timestamp = in_commit_timestamp(action)
            elif kind == "protocol":
                protocol = Protocol.parse(action)
            elif kind == "metaData":
                metadata = Metadata.parse(action)
            elif kind == "txn":
                transactions[str(action.get("appId"))] = (_whole(action, "version"), action.get("lastUpdated"))
            elif kind == "domainMetadata":
                if action.get("removed"):
                    domains.pop(str(action.get("domain")), None)
                else:
                    domains[str(action.get("domain"))] = str(action.get("configuration", ""))
    return replace(
        state,
        protocol=protocol,
        metadata=metadata,
        transactions=transactions,
        domains=domains,
        in_commit_timestamp=timestamp,
    )
