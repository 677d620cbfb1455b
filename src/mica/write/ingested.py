"""Which input files a table has already: one transaction of its log names the record of all of them.

The rule: a file and its rows are there together or not at all. The record is written first, under a name that nobody
else uses; the commit that adds the rows sets the transaction `mica.ingest:files` to it. So log and checkpoints hold one
entry, however many files there are, and what a killed run leaves is a record that no log names.

    version of the transaction     batch << 31 | random           two writers never write the same record
    _ingested/VERSION.arrow        name, modified; previous       the files of the last batches; the record before them

The record of a batch has the files of as many batches as the largest power of 16 that divides its number. So a table of
a million batches is read from at most 75 records, and a file is in at most five.

A file is identified by its full name, its state by its modification time. Tables of older versions have a transaction
for each file (`mica.ingest:NAME`, the time as its version): those count too.

Source: PROTOCOL.md, "Transaction Identifiers".
"""

from __future__ import annotations

import functools
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

import pyarrow as pa

from mica.arrays import arrow_array
from mica.errors import ConflictError, CorruptDataError, StorageError, UserError
from mica.log.applications import INGESTED
from mica.log.listing import list_log
from mica.log.snapshot import Snapshot, load, read_each
from mica.records import dataclass
from mica.storage import SCHEMES, AlreadyExistsError, Storage, split_scheme
from mica.tasks.ingest import Split

#: What the transactions of input files are named by, the one of the record, and the version of none.
PREFIX = INGESTED
RECORD = PREFIX + "files"
NEVER = -1

#: The folder of the records; readers and VACUUM leave names that begin with `_` alone.
FOLDER = "_ingested"

_RANDOM, _RADIX = 31, 16
_SCHEMA = pa.schema([pa.field("name", pa.string(), False), pa.field("modified", pa.int64(), False)])
_PREVIOUS = b"previous"

#: Modification times (ms since the epoch) by the names of files.
Times = Mapping[str, int]


@dataclass(frozen=True)
class _Record:
    """The files of some batches, and the version of the record before."""

    files: Times
    previous: int


#: The ways out for a file that has changed: of one ingest, and of a stream, which takes each file once.
ALONE = "Put new rows into a new file, or leave idempotent=True out to ingest all of it."
STREAM = "Move it away, or give it another name to take it whole: the rows that it had come again."


@dataclass
class Ingested:
    """The input files that a table has at a version; `move` goes to another."""

    storage: Storage
    version: int = NEVER
    _files: dict[str, int] = field(default_factory=dict, repr=False)
    _old: Times = field(default_factory=dict, repr=False)
    #: The records of the version, the newest first; they never change.
    _chain: dict[int, _Record] = field(default_factory=dict, repr=False)

    def move(self, snapshot: Snapshot | None) -> Ingested:
        """Goes to a version of the table. Errors: RECORD_MISSING."""
        done = {} if snapshot is None else snapshot.app_transactions
        old = {name: at for name, at in done.items() if name.startswith(PREFIX)}
        version, self._old = old.pop(RECORD, NEVER), old
        if version != self.version:
            chain = _chain(self.storage, version, self._chain)
            self._files = {name: time for record in reversed(chain.values()) for name, time in record.files.items()}
            self.version, self._chain = version, chain
        return self

    def fresh(self, files: Iterable[Split], hint: str = ALONE) -> dict[str, Split]:
        """The files that the table does not have, by name, each once; `hint` is the way out of the error.

        Errors: INPUT_CHANGED for a file that was ingested in another state, since neither skipping it nor ingesting it
        again would be right.
        """
        found: dict[str, Split] = {}
        real = functools.lru_cache(64)(_real)  # of this listing: a link may lead elsewhere later
        for file in files:
            name = _name(file, real)
            known = self.time_of(name)
            if known == NEVER:
                found.setdefault(name, file)
            elif not _is_same(known, file):
                raise UserError(
                    "INPUT_CHANGED",
                    f"{file.name} was ingested before and has changed since",
                    hint=hint,
                    path=file.name,
                )
        return found

    def time_of(self, name: str) -> int:
        """The time of a file that the table has, or NEVER."""
        return self._files.get(name, self._old.get(PREFIX + name, NEVER))

    def put(self, files: Times) -> int:
        """Writes the record of the next batch and returns its version, which counts if a commit names it."""
        number = (max(self.version, 0) >> _RANDOM) + 1
        first = number - _span(number)
        chain = {at: record for at, record in self._chain.items() if at >> _RANDOM <= first}
        merged = [record.files for at, record in self._chain.items() if at not in chain]
        record = _Record(
            {name: time for one in (*reversed(merged), files) for name, time in one.items()},
            next(iter(chain), NEVER),
        )
        while True:
            version = number << _RANDOM | secrets.randbits(_RANDOM)
            try:
                self.storage.put_if_absent(_file(version), _written(record))
            except AlreadyExistsError:
                continue
            self.version, self._chain = version, {version: record, **chain}
            self._files |= files
            return version


@dataclass
class Taken:
    """The files of a run, as its transaction records them: on each version that the commit may follow.

    Files that another run took meanwhile are a conflict, other files of other runs are none."""

    ingested: Ingested
    files: Mapping[str, Split]
    _written: str | None = None

    def __call__(self, base: Snapshot | None) -> Mapping[str, int]:
        """The transaction of a commit that follows `base`. Errors: CONCURRENT_TRANSACTION."""
        self.discard()
        self.ingested.move(base)
        both = next((file for name, file in self.files.items() if self.ingested.time_of(name) != NEVER), None)
        if both is not None:
            raise ConflictError(
                "CONCURRENT_TRANSACTION",
                f"another writer ingested {both.name} concurrently",
                hint="Nothing was written. Repeat the operation: it takes the files that are left.",
                path=both.name,
            )
        version = self.ingested.put({name: file.modified for name, file in self.files.items()})
        self._written = _file(version)
        return {RECORD: version}

    def discard(self) -> None:
        """Deletes the record of a commit that certainly was not made."""
        if self._written is not None:
            self.ingested.storage.discard([self._written])
            self._written = None


def forgotten(done: Times, before: Times | None = None) -> dict[str, int]:
    """The transactions to commit when rows go: of all of a table, so that its input files may be ingested again, or
    those that came after another version (`before`)."""
    before = before or {}
    return {
        name: before.get(name, NEVER)
        for name, version in done.items()
        if name.startswith(PREFIX) and before.get(name, NEVER) != version
    }


def named(snapshot: Snapshot) -> set[str]:
    """The files of the records that a version of the log names: it may be restored, however old its files are. Errors:
    those of reading the log, RECORD_MISSING for this version."""
    storage = snapshot.storage
    commits = list_log(storage).commits
    first = min(commits, default=snapshot.version)
    heads = {done.app_transactions.get(RECORD, NEVER) for done in (snapshot, load(storage, first))}
    names = [entry.path for version, entry in commits.items() if version > first]
    heads = heads.union(*read_each(storage, names, _heads))
    known = _chain(storage, snapshot.app_transactions.get(RECORD, NEVER), {})
    for head in heads:
        try:
            known |= _chain(storage, head, known)
        except CorruptDataError as e:
            if not (isinstance(e.__cause__, StorageError) and e.__cause__.code == "NOT_FOUND"):
                raise
            # Such a version cannot be restored.
    return set(map(_file, known))


def _heads(commit: bytes) -> set[int]:
    """The record that a commit names, if it names one."""
    txns = (json.loads(line).get("txn") or {} for line in commit.splitlines() if RECORD.encode() in line)
    return {txn["version"] for txn in txns if txn.get("appId") == RECORD}


def _chain(storage: Storage, version: int, known: Mapping[int, _Record]) -> dict[int, _Record]:
    """The records of a version, the newest first. Errors: RECORD_MISSING."""
    chain, at = dict[int, _Record](), version
    while at > 0:
        chain[at] = known.get(at) or _read(storage, at)
        before, at = at, chain[at].previous
        if at >= before:  # records that name each other would be read for ever
            raise _missing(storage, before, f"it names a record before it that is not, {at}")
    return chain


def _span(number: int) -> int:
    """The largest power of 16 that divides a number."""
    span = 1
    while number % (span * _RADIX) == 0:
        span *= _RADIX
    return span


def _file(version: int) -> str:
    return f"{FOLDER}/{version:020d}.arrow"


def _written(record: _Record) -> bytes:
    columns = [arrow_array(list(record.files), pa.string()), arrow_array(list(record.files.values()), pa.int64())]
    schema, sink = _SCHEMA.with_metadata({_PREVIOUS: str(record.previous)}), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(pa.Table.from_arrays(columns, schema=schema))
    made: bytes = sink.getvalue().to_pybytes()
    return made


def _read(storage: Storage, version: int) -> _Record:
    try:
        file = pa.ipc.open_file(pa.py_buffer(storage.read(_file(version))))
        found = file.read_all().select(_SCHEMA.names)
        found.validate(full=True)  # Arrow believes the offsets of texts, and would read other memory than the file's
        names, times = (column.to_pylist() for column in found.cast(_SCHEMA).columns)
        return _Record(dict(zip(names, times, strict=True)), int((file.schema.metadata or {})[_PREVIOUS]))
    except (StorageError, pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise _missing(storage, version, error) from error


def _missing(storage: Storage, version: int, why: object) -> CorruptDataError:
    name = storage.path(_file(version))
    return CorruptDataError(
        "RECORD_MISSING",
        f"the record of the files that {storage} has cannot be read from {name}: {why}",
        hint="Restore it, or leave idempotent=True out and name only files that the table does not have.",
        path=name,
    )


def _is_same(known: int, file: Split) -> bool:
    """Whether a file has the time that it had. A store tells seconds of one file, and of files in a list more."""
    if split_scheme(file.name)[0] is not None:
        return known // 1000 == (file.modified or 0) // 1000
    return known == file.modified


def _name(file: Split, real: Callable[[str], str]) -> str:
    """One name per file, however its scheme is spelled, and whatever links lead to it."""
    scheme, rest = split_scheme(file.name)
    kind = None if scheme is None else SCHEMES.get(scheme, scheme)
    if kind is not None:
        return f"{kind}:{rest}"
    folder, slash, name = file.name.rpartition("/")
    if os.path.islink(file.name):  # noqa: PTH114 - of millions
        return os.path.realpath(file.name)
    return f"{real(folder + slash)}/{name}"


def _real(folder: str) -> str:
    return os.path.realpath(folder).rstrip("/")
