"""Tells what of a table still holds a path that was erased from its Variants.

The rule: everything under the table's location is looked at, whichever version names it: the rows of every Parquet
file, those that deletion vectors hide, change files and what killed writers left, and the bounds in every commit,
checkpoint, sidecar and checksum of the log. So are the files elsewhere that a version names, as a clone names those of
its source. A value or a bound of the path, or of a path below it, is a trace; so is a name in a metadata dictionary
that no field of its row has, and a `commitInfo`, a constraint, a generated column or a quarantined line that quotes the
path (`quoted`). A file that no version names may be half a file, or somebody else's: if it cannot be read, what it
holds is not known, and it is told.

| where | goes with |
|---|---|
| rows, names and bounds of the newest version | `Table.erase` |
| data and change files that the newest version does not name, sidecars that no checkpoint names | `Table.vacuum` |
| files elsewhere that only older versions name | `Table.erase` and `Table.vacuum` of the table there |
| constraints and generated columns of the newest version | `Table.drop_constraint`, `Table.drop_columns` |
| those of older versions, bounds of such files in the log, predicates of commits | the log's cleanup |
| lines that an ingest set aside in `_quarantine` | their deletion, by whoever keeps them |
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import orjson
import pyarrow as pa

from mica import compute as pc
from mica import late
from mica.arguments import OPTIONS, TABLE, TEXT, takes
from mica.arrays import arrow_array, batch_of, to_numpy
from mica.checking.quoted import quarantined, quotes, quoting, words_of
from mica.engines import local
from mica.errors import CorruptDataError, MicaError, StorageError
from mica.log.actions import Metadata, parse_line
from mica.log.checkpoint import PartSource, read_checkpoint, read_part, sidecars_of
from mica.log.feed_columns import DIRECTORY
from mica.log.listing import list_log, log_entries
from mica.log.opened import Opened, table_of
from mica.log.paths import ABSOLUTE, LOG, SIDECARS, decode_path
from mica.log.replay import Commits, State, partition_keys
from mica.log.shares import parsed
from mica.log.snapshot import Snapshot
from mica.properties import COLUMN_MAPPING_MODE
from mica.records import dataclass
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema import json as schema_json
from mica.schema.arrow import variant_field
from mica.schema.spelling import quote_if_needed
from mica.schema.types import VARIANT, StructField, StructType
from mica.stats import documents
from mica.stats.columns import PHYSICAL_NAME, physical_name, physical_names
from mica.storage.base import Entry
from mica.tasks.ahead import at_once
from mica.tasks.erase import traces
from mica.tasks.file import ReadSpec
from mica.tasks.parts import FilePart
from mica.variant import kernel
from mica.variant.path import VariantPath
from mica.wording import counted
from mica.write.erase import erased_path

T = TypeVar("T")
_ABSOLUTE = late.pattern(ABSOLUTE)
#: How a file is refused that was written before the table was replaced: the column is no Variant, or has no id.
_OF_OTHER_SCHEMA = ("INCOMPATIBLE_TYPE", "MISSING_FIELD_ID")

#: One row per file: `kind` is values, names, bounds, predicates, lines or unread; `count` rows of a data file, files
#: with bounds or expressions in a log file, quarantined lines, or 1. `first` and `last` are the versions that name a
#: file, `last` null for the newest; `goes_with` is what removes it.
TRACES = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
        pa.field("goes_with", pa.string(), nullable=False),
    ]
)
_FOUND = pa.schema([("file", pa.string())] + [(kind, pa.int64()) for kind in ("values", "names", "unread")])


@dataclass(frozen=True)
class Erased:
    """What still holds a path. `traces` has the columns of `TRACES`."""

    table: str
    version: int
    path: str
    files: int
    traces: pa.Table

    @property
    def ok(self) -> bool:
        """Whether nothing holds it."""
        return len(self.traces) == 0

    @property
    def current(self) -> bool:
        """Whether the newest version holds it."""
        return not {"erase", "drop_constraint", "drop_columns"}.isdisjoint(self.traces["goes_with"].to_pylist())

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        told = {"table": self.table, "version": self.version, "path": self.path, "files": self.files}
        return {**told, "erased": not self.current, "gone": self.ok, "traces": self.traces.to_pylist()}

    def __str__(self) -> str:
        if self.ok:
            return f"{counted(self.files, 'file')} and the log of {self.table}: nothing holds {self.path}"
        traces = [
            f"  {one['kind']} in {one['file']}: {one['count']:,}, goes with {one['goes_with']}"
            for one in self.traces.to_pylist()
        ]
        return "\n".join([f"what holds {self.path} in {self.table}", *traces])


@takes(path=TABLE, erased=TEXT, storage_options=OPTIONS)
def check_erased(
    path: str | os.PathLike[str] | Opened, erased: str, *, storage_options: Mapping[str, str] | None = None
) -> Erased:
    """Looks for a path of a Variant column, `v:user.email`, in all files and the log of a table; changes nothing.

    Errors: INVALID_PATH, UNKNOWN_COLUMN, TABLE_NOT_FOUND, IO; CORRUPT_… for a file that a version names and
    nobody can read.
    """
    snapshot = table_of(path, storage_options)
    column, found = erased_path(snapshot.schema, erased)
    known = _Log(snapshot, column, found)
    files = [entry for entry in snapshot.storage.list() if _is_data(entry.path)]
    names = {entry.path for entry in files}
    others = sorted((known.current | known.elsewhere) - names)
    works = [FilePart(entry.path, entry.size) for entry in files] + [FilePart(name, None) for name in others]
    source = TableSource(snapshot)
    spec = replace(Scan(source, None, {"v": quote_if_needed(column)}, None, True, "UTC").spec(), predicate=None)
    specs = [spec, *known.by_former_names(spec)]
    look = partial(_traces_in, specs, found, known.current, known.named | known.elsewhere)
    batches = local.shown(look, works, parallelism=max(local.threads(), at_once(snapshot.storage, works)))
    rows = [row for batch in batches for row in batch.to_pylist()]
    traces = [trace for row in rows for trace in known.of_file(row)] + known.bounds()
    for file, count in quarantined(snapshot.storage, found.steps):
        lines = {"kind": "lines", "file": file, "count": count, "first": None, "last": None, "goes_with": "deletion"}
        traces.append(lines)
    shown = f"{quote_if_needed(column)}:{found}"
    table = pa.Table.from_batches([batch_of(traces, TRACES)])
    return Erased(str(snapshot.storage), snapshot.version, shown, len(works), table)


def _is_data(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(f"{LOG}/")


def _traces_in(
    specs: Sequence[ReadSpec],
    path: VariantPath,
    current: AbstractSet[str],
    named: AbstractSet[str],
    part: FilePart,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in which the path is, and in which only its name is, under each name of the column."""
    values = names = unread = 0
    is_older = part.path in named and part.path not in current
    is_sure = part.path in named and not (is_older and _ABSOLUTE.match(part.path))
    for spec in specs:
        try:
            for found in traces(replace(spec, of_commits=is_older), part, path.steps):
                values += found.column("value").true_count
                names += found.column("name").true_count
        except StorageError as error:
            if is_sure or part.path not in named:
                raise
            unread = int(error.code != "NOT_FOUND")  # another table's vacuum is done with it
        except MicaError as error:
            if is_older and error.code in _OF_OTHER_SCHEMA:
                continue
            if is_sure:
                raise
            unread = 1
    if values or names or unread:
        yield batch_of([{"file": part.path, "values": values, "names": names, "unread": unread}], _FOUND)


class _Log:
    """What the log says: which versions name a file, and which of its own files hold bounds of the path."""

    def __init__(self, snapshot: Snapshot, column: str, path: VariantPath) -> None:
        self.snapshot, self.column, names = snapshot, column, physical_names(snapshot.schema, (column,))
        #: The names of the column in files, the first of them now: a table that is replaced, or whose columns are not
        #: mapped any more, has older files with others.
        self.names = list(names)
        self._taken = {physical_name(field).lower() for field in snapshot.schema.fields}
        self.key = path.normalized
        self.current = {decode_path(p) for p in snapshot.files.column("path").to_pylist()}
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        self.found: list[dict[str, Any]] = []
        self.infos: list[tuple[str, int | None, Mapping[str, Any]]] = []
        self.metadata: list[tuple[str, int | None, Metadata]] = []
        self.columns = {column}
        #: Files outside of the table's folder that some version names.
        self.elsewhere = set(filter(_ABSOLUTE.match, self.current))
        storage = snapshot.storage
        listing = list_log(storage)
        keys = partition_keys(snapshot.metadata, snapshot.protocol)
        versions = {entry.path: version for version, entry in listing.commits.items()}
        commits = [entry for _, entry in sorted(listing.commits.items())]
        compactions = [one.entry for some in listing.compactions.values() for one in some]
        for entries, actions, places in parsed(storage, [*commits, *compactions], keys):
            self._commits([(entry.path, versions.get(entry.path)) for entry in entries], actions, places)
        named: set[str] = set()
        for checkpoint in chain.from_iterable(listing.checkpoints.values()):
            self._state(read_checkpoint(storage, checkpoint), checkpoint.entries[0].path, "log cleanup")
            named |= sidecars_of(storage, checkpoint)
        for entry in storage.list(SIDECARS, recursive=False):
            # Hadoop's checksum of a sidecar, `.x.parquet.crc`, is none of them.
            if entry.path not in named and entry.path.endswith(".parquet"):
                self._sidecar(entry)
        for entry in log_entries(storage):
            if entry.path.endswith(".crc"):
                self._checksum(entry)
        words = words_of(self.columns, path.steps)
        for file, at, info in self.infos:
            if quotes(info, words):
                found = {"kind": "predicates", "file": file, "count": 1, "goes_with": "log cleanup"}
                self.found.append({**found, "first": at, "last": at})
        now = quoting(snapshot.metadata, words)
        for file, at, metadata in self.metadata:
            texts = quoting(metadata, words)
            if texts:
                goes = next((now[text] for text in texts if text in now), "log cleanup")
                found = {"kind": "predicates", "file": file, "count": len(texts), "goes_with": goes}
                self.found.append({**found, "first": at, "last": at})

    def _state(self, state: State, file: str, goes: str) -> None:
        """The bounds in a checkpoint, by its parts; `file` is the one that has lines of JSON."""
        if state.metadata is not None:
            self._former_name(state.metadata)
            self.metadata.append((file, None, state.metadata))
        for number, source in enumerate(state.sources):
            files = state.files.filter(pc.equal(state.files.column("source"), number))
            names = [decode_path(p) for p in files.column("path").to_pylist()]
            self.elsewhere.update(filter(_ABSOLUTE.match, names))
            texts, structs = _statistics(source, files.column("row"))
            held = self._of_texts([] if texts is None else texts.to_pylist(), names) | self._of_structs(structs, names)
            self._told(source.rel if isinstance(source, PartSource) else file, held, goes)

    def _sidecar(self, entry: Entry) -> None:
        """The bounds in a sidecar that no checkpoint names, which may be half a file."""
        try:
            self._state(read_part(self.snapshot.storage, entry.path, entry.size, State(), []), entry.path, "vacuum")
        except CorruptDataError:
            self.found.append({"kind": "unread", "file": entry.path, "count": 1, "goes_with": "vacuum"})

    def _checksum(self, entry: Entry) -> None:
        """The bounds and metadata in a checksum file of delta-spark (PROTOCOL.md, "Version Checksum")."""
        try:
            known = orjson.loads(self.snapshot.storage.read(entry.path))
        except orjson.JSONDecodeError:
            return
        if not isinstance(known, dict):
            return
        if isinstance(known.get("metadata"), dict):
            self.metadata.append((entry.path, None, Metadata.parse(known["metadata"])))
        files = known.get("allFiles")
        files = files if isinstance(files, list) else ()
        adds = [add for add in files if isinstance(add, dict) and isinstance(add.get("path"), str)]
        names = [decode_path(add["path"]) for add in adds]
        self._told(entry.path, self._of_texts([add.get("stats") for add in adds], names))

    def _commits(self, files: Sequence[tuple[str, int | None]], found: Commits, places: np.ndarray) -> None:
        """What commits say, by the files of the log that they are, with their versions; None for a compaction."""
        added = _names_by(places[found.add_rows], found.adds)
        removed = _names_by(places[found.remove_rows], found.removes)
        changes = _change_files(found.lines, places)
        for row, action in found.others:
            file, version = files[places[row]]
            if isinstance(action.get("commitInfo"), dict):
                self.infos.append((file, version, action["commitInfo"]))
            if "metaData" in action:
                metadata = Metadata.parse(action["metaData"])
                self.metadata.append((file, version, metadata))
                self._former_name(metadata)
        rows = [(place, name) for place, names in added.items() for name in names]
        self.elsewhere.update(name for _, name in rows if _ABSOLUTE.match(name))
        held = defaultdict[int, set[str]](set)
        for place, name in self._of_texts(found.stats.to_pylist(), rows):
            held[place].add(name)
        for place, (file, version) in enumerate(files):
            if version is not None:
                self.first.update(dict.fromkeys(changes[place], version))
                self.last.update(dict.fromkeys(changes[place], version))
                for name in added[place]:
                    self.first.setdefault(name, version)
                    self.last.pop(name, None)
                for name in set(removed[place]).difference(added[place]):  # one with a new deletion vector is both
                    self.last[name] = version - 1
            self._told(file, held[place])

    def _former_name(self, metadata: Metadata) -> None:
        """The column's names at the version of this metadata, in the schema and in files."""
        is_mapped = COLUMN_MAPPING_MODE.of(metadata.configuration) != "none"
        schema = schema_json.loads(metadata.schema_string)
        for field in schema.fields:
            name = physical_name(field) if is_mapped else field.name
            if name == self.names[0]:
                self.columns.add(field.name)
            elif field.name == self.column and field.type == VARIANT and name.lower() not in self._taken:
                self._taken.add(name.lower())
                self.names.append(name)

    def by_former_names(self, spec: ReadSpec) -> Iterator[ReadSpec]:
        """A spec of each other name that the column had in files."""
        for name in self.names[1:]:
            fields = (
                StructField(f.name, f.type, f.nullable, {PHYSICAL_NAME: name}) if f.name == self.column else f
                for f in spec.columns.fields
            )
            yield replace(spec, columns=StructType(tuple(fields)), by_id=False)

    def _told(self, file: str, held: set[str], otherwise: str = "log cleanup") -> None:
        if held:
            goes = "erase" if held & self.current else otherwise
            self.found.append({"kind": "bounds", "file": file, "count": len(held), "goes_with": goes})

    def _of_texts(self, stats: Sequence[str | None], files: Sequence[T]) -> set[T]:
        """The files of which statistics in JSON hold a bound of the path."""
        texts: list[str | None] = []
        places = [(side, name) for side in ("minValues", "maxValues") for name in self.names]
        for text in stats:
            document = documents.values(text)
            for side, name in places:
                bound = documents.at(document.get(side), (name,))
                texts.append(bound if isinstance(bound, str) and bound.isascii() else None)
        paths = kernel.all_bounds(arrow_array(texts, pa.string()))
        at = pc.or_(pc.equal(paths.column("path"), self.key), pc.starts_with(paths.column("path"), f"{self.key}["))
        return {files[row // len(places)] for row in paths.column("row").filter(at).to_pylist()}

    def _of_structs(self, parsed: pa.StructArray | None, files: Sequence[str]) -> set[str]:
        """The files of which statistics in structs of a checkpoint hold one."""
        held: set[str] = set()
        written = orjson.dumps(self.key).decode()[1:-1]
        places = [(side, name) for side in ("minValues", "maxValues") for name in self.names]
        for place in places if parsed is not None else ():
            bounds = _field(parsed, place)
            if bounds is None or not pa.types.is_struct(bounds.type):
                continue
            schema = pa.schema([variant_field("v").with_type(bounds.type)])
            plain = kernel.unshred(pa.record_batch([bounds], schema=schema))
            texts = kernel.variant_to_json(plain).column(0)
            at = pc.or_(pc.match_substring(texts, f'"{written}"'), pc.match_substring(texts, f'"{written}['))
            held.update(name for name, found in zip(files, at.to_pylist(), strict=True) if found)
        return held

    @property
    def named(self) -> AbstractSet[str]:
        """The data and change files that some version names."""
        return self.current | self.first.keys()

    def bounds(self) -> list[dict[str, Any]]:
        """The traces in the log."""
        return [{"first": None, "last": None, **found} for found in self.found]

    def of_file(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The traces in a data file."""
        name = row["file"]
        if name in self.current and not name.startswith(f"{DIRECTORY}/"):
            goes = "erase"
        else:
            goes = "vacuum there" if name in self.elsewhere else "vacuum"
        for kind in ("values", "names", "unread"):
            if row[kind]:
                yield {
                    "kind": kind, "file": name, "count": row[kind], "first": self.first.get(name),
                    "last": self.last.get(name), "goes_with": goes,
                }  # fmt: skip


def _names_by(places: np.ndarray, files: pa.Table) -> defaultdict[int, list[str]]:
    """The names of files, by the places of their commits."""
    found = defaultdict[int, list[str]](list)
    for place, path in zip(places.tolist(), files.column("path").to_pylist(), strict=True):
        found[place].append(decode_path(path))
    return found


def _change_files(lines: pa.Array, places: np.ndarray) -> defaultdict[int, list[str]]:
    """The change files that lines name, by the places of their commits."""
    found = defaultdict[int, list[str]](list)
    is_change = pc.match_substring_regex(lines, r'^\s*\{\s*"cdc"\s*:')
    for place, line in zip(places[to_numpy(is_change)].tolist(), lines.filter(is_change), strict=True):
        action = parse_line(line.as_buffer().to_pybytes())["cdc"]
        if isinstance(action, dict) and isinstance(action.get("path"), str):
            found[place].append(decode_path(action["path"]))
    return found


def _statistics(source: Any, rows: pa.ChunkedArray) -> tuple[pa.Array | None, pa.Array | None]:
    """The statistics of some files of a checkpoint: as JSON, and as structs."""
    if not isinstance(source, PartSource):
        return source.stats.take(rows.combine_chunks()), None
    columns = [source.add_column(name) for name in ("stats", "stats_parsed")]
    texts, structs = (None if column is None else column.take(rows.combine_chunks()) for column in columns)
    return texts, structs


def _field(values: pa.Array, names: Sequence[str]) -> pa.Array | None:
    for name in names:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
            return None
        values = pc.struct_field(values, name)
    return values
