"""Table features added and dropped.

The rule: a feature is dropped only when nothing of it is left. First its traces go: properties, and files that use it
are rewritten without changing data. Then the protocol loses it. A reader that does not know the feature may still meet
it in the history of a feature of readers: either the log of older versions is protected (`checkpointProtection`: only
whoever knows the old features may clean it up), or that history is deleted, once it is old enough.

| feature | before it is dropped |
|---|---|
| deletionVectors | files with vectors are rewritten without their deleted rows |
| columnMapping | all files are rewritten with the columns' names |
| typeWidening | all files are rewritten with today's types |
| variantShredding | shredded files are rewritten with unshredded Variants |
| v2Checkpoint | properties; classic checkpoints are written |
| vacuumProtocolCheck, inCommitTimestamp | properties |
| rowTracking | properties; files are added again without ids of rows |
| domainMetadata | the domains that are left |
| checkConstraints | refused while there are constraints |
| checkpointProtection | the protected history must be old enough, and is deleted |

Source: PROTOCOL.md, "Table Features", "Checkpoint Protection"; delta-spark's ALTER TABLE DROP FEATURE.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
import pyarrow as pa

from mica import properties
from mica.engines.local import IN_PROCESS
from mica.errors import MicaError, UserError
from mica.log import features
from mica.log.actions import Metadata, Protocol
from mica.log.checkpoint import read_checkpoint
from mica.log.checkpoint_writer import write_checkpoint
from mica.log.cleanup import expired
from mica.log.clustering import cluster_by
from mica.log.column_mapping import effective, with_voids, without_keys
from mica.log.conflicts import every_file
from mica.log.creation import altered
from mica.log.domains import CLUSTERING_DOMAIN
from mica.log.listing import Listing, list_log, log_entries
from mica.log.snapshot import Snapshot
from mica.maintain.alter import changed, writable
from mica.maintain.cluster import domain_of
from mica.properties import FEATURE
from mica.records import dataclass
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema import json as schema_json
from mica.schema.edit import map_fields
from mica.schema.types import StructType
from mica.stats.columns import TYPE_CHANGES
from mica.tasks.parts import FilePart, in_tasks
from mica.tasks.rewrite import RewriteSpec, rewrite_files, unshred_files
from mica.tasks.write import WriteSpec
from mica.write import flow
from mica.write.rules import constraints
from mica.write.target import target_of

_LOG = logging.getLogger("mica")

Line = Mapping[str, Any]


@dataclass(frozen=True)
class _Removal:
    """How one feature is dropped. `clean` returns the metadata without it, `stale` says which files must be rewritten
    for that, and `rewrite` does it; `outlives` is whether files may use it although the metadata says nothing of it.
    `asks` is whether a metaData of the log asks for it, `traces` whether a line uses it, `checkpoints` which kind of
    checkpoints does.
    """

    clean: Callable[[Metadata], Metadata]
    stale: Callable[[FilePart], bool] = lambda _: False
    asks: Callable[[Metadata], bool] = lambda _: False
    traces: Callable[[Line], bool] = lambda _: False
    checkpoints: str | None = None
    rewrite: Callable[[RewriteSpec, Iterable[FilePart]], Iterator[pa.RecordBatch]] = rewrite_files
    outlives: bool = False


def add_feature(before: Snapshot, name: str) -> Snapshot:
    """See `Table.add_feature`."""
    writable(before)
    protocol, metadata = altered(before.protocol, before.metadata, changes={f"{FEATURE}{name}": "supported"})
    return changed(before, "ADD FEATURE", {"featureName": name}, protocol, metadata)


def drop_feature(before: Snapshot, name: str, *, truncate_history: bool) -> Snapshot:
    """See `Table.drop_feature`."""
    writable(before)
    known = properties.feature_of(name)
    if known is None or not features.supports(before.protocol, known.name):
        there = ", ".join(sorted(features.names(before.protocol)))
        raise UserError(
            "UNKNOWN_FEATURE", f"{before.storage} does not have the table feature {name!r}", hint=f"It has: {there}."
        )
    removal = _REMOVALS.get(known.name)
    if removal is None:
        raise UserError(
            "FEATURE_NOT_REMOVABLE",
            f"the table feature {known.name} cannot be dropped",
            hint=f"These can: {', '.join(_REMOVALS)}.",
        )
    _refuse_needed(before, known)
    snapshot = _without_traces(before, removal, known.name)
    historic = known.for_readers or known.name == "checkpointProtection"
    if historic and (truncate_history or known.name == "checkpointProtection"):
        return _dropped(_truncated(snapshot, removal, known.name), known.name)
    return _protected(snapshot, known.name) if historic else _dropped(snapshot, known.name)


def _refuse_needed(before: Snapshot, known: properties.Feature) -> None:
    for other in features.names(before.protocol):
        found = properties.feature_of(other)
        if found is not None and known.name in found.needs:
            raise UserError(
                "FEATURE_NOT_REMOVABLE", f"the table feature {other} needs {known.name}", hint=f"Drop {other} first."
            )
    named = constraints(before.properties)
    if known.name == "checkConstraints" and named:
        raise UserError(
            "FEATURE_NOT_REMOVABLE",
            f"{before.storage} has CHECK constraints: {', '.join(named)}",
            hint="Drop them first: drop_constraint.",
        )


def _without_traces(before: Snapshot, removal: _Removal, name: str) -> Snapshot:
    """The version without properties and files that use the feature; the same one if there are none."""
    metadata = removal.clean(before.metadata)
    if was_clean := metadata == before.metadata:
        metadata = before.metadata
    target = target_of(before)
    source = TableSource(before)
    files = [file for file in source.rewritten() if removal.stale(file)]
    clustered, renames = None, name == "columnMapping"
    if renames and CLUSTERING_DOMAIN in before.domains:  # it has the columns' names in files
        clustered = domain_of(before.protocol, metadata, cluster_by(before), str(before.storage))
    domains = {} if clustered is None else {CLUSTERING_DOMAIN: clustered}
    left = dict.fromkeys(before.domains) if name == "domainMetadata" else {}
    if was_clean and not left and not (files and removal.outlives):
        return before  # files are rewritten with the properties that made them
    if not files:
        return changed(
            before, "UNSET TBLPROPERTIES", {"feature": name}, before.protocol, metadata, rests_on_files=True,
            domains={**domains, **left}, watched=[CLUSTERING_DOMAIN] if renames else [],
        )  # fmt: skip
    target = replace(
        target, metadata=metadata, remakes=renames, clustering=clustered, reads=(every_file,), data_change=False,
        operation="REORG", parameters={"predicate": [], "applyPurge": True},
        metrics=lambda facts: {"numRemovedFiles": len(facts.removed), "numAddedFiles": len(facts.names)},
    )  # fmt: skip
    scan = Scan(source)
    spec = replace(target.rewriting_spec(target.write_spec(), scan.timezone), target_file_size=1 << 62)
    read = scan.rewriting()

    def task(write: WriteSpec) -> Callable[[Any], Any]:
        return partial(removal.rewrite, RewriteSpec(read, write))

    tasks = flow.FromTasks(task, in_tasks(files, IN_PROCESS.parallelism))
    return flow.commit_changes(IN_PROCESS, target, spec, tasks).snapshot or before


def _dropped(snapshot: Snapshot, name: str, protects: int | None = None) -> Snapshot:
    """The version without the feature; `protects` is the version before which the log is protected."""
    protocol, metadata = without(snapshot.protocol, name), snapshot.metadata
    if protects is not None:
        protocol = features.upgraded(protocol, {"checkpointProtection"})
        metadata = metadata.with_configuration({properties.CHECKPOINT_PROTECTION.name: str(protects)})
    elif name == "checkpointProtection":
        metadata = metadata.with_configuration({properties.CHECKPOINT_PROTECTION.name: None})
    parameters = {"featureName": name, "truncateHistory": protects is None}
    return changed(snapshot, "DROP FEATURE", parameters, protocol, metadata, rests_on_files=True)


def _protected(snapshot: Snapshot, name: str) -> Snapshot:
    """The version without the feature, behind checkpoints that whoever does not know it can start from."""
    write_checkpoint(snapshot)
    wanted = snapshot.version + 1
    done = _dropped(snapshot, name, wanted)
    if done.version != wanted:  # another commit came between
        metadata = done.metadata.with_configuration({properties.CHECKPOINT_PROTECTION.name: str(done.version)})
        done = changed(done, "SET TBLPROPERTIES", {"properties": {}}, done.protocol, metadata)
    try:
        write_checkpoint(done)
    except MicaError as error:  # the feature is gone, and must not seem to be there
        version, table = done.version, done.storage
        _LOG.warning("version %d of %s is committed, but its checkpoint is not: %s", version, table, error)
    return done


def _truncated(snapshot: Snapshot, removal: _Removal, name: str) -> Snapshot:
    """Deletes the log of versions that use the feature; returns the version that the log begins with. Errors:
    FEATURE_IN_HISTORY if they are too young.
    """
    storage = snapshot.storage
    listing = list_log(storage)
    commits = listing.commits
    using = list(_using(snapshot, listing, removal))
    if name == "checkpointProtection":
        using = [v for v in commits if v < properties.CHECKPOINT_PROTECTION.of(snapshot.properties)]
    checkpoints = [one for found in listing.checkpoints.values() for one in found]
    using += [one.version for one in checkpoints if one.kind == removal.checkpoints]
    if not using:
        return snapshot
    last = max(using)
    there = [*commits.items(), *((one.version, one.entries[0]) for one in checkpoints)]
    newest = max(entry.modified for version, entry in there if version <= last)
    retention = properties.TRUNCATE_RETENTION.of(snapshot.properties)
    ready = newest + retention
    if ready > time.time() * 1000:
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(ready / 1000))
        raise UserError(
            "FEATURE_IN_HISTORY",
            f"{storage} no longer uses {name}, but versions up to {last} do, and readers may still open them",
            hint=f"Call it again after {when} ({properties.TRUNCATE_RETENTION.name}), or drop the feature without "
            "truncate_history.",
            version=last,
        )
    if last == snapshot.version:  # it removes what uses the feature, and so names it
        snapshot = changed(snapshot, "TRUNCATE HISTORY", {}, snapshot.protocol, snapshot.metadata)
    write_checkpoint(snapshot)
    storage.discard(expired(log_entries(storage), snapshot.version))
    return snapshot


def _using(snapshot: Snapshot, listing: Listing, removal: _Removal) -> Iterator[int]:
    """The commits in whose versions the feature is: a metaData that asks for it counts until the next one."""
    commits = sorted(listing.commits)
    first = min(listing.checkpoints, default=None)
    asks = False
    if first is not None and commits[:1] != [0]:
        metadata = read_checkpoint(snapshot.storage, listing.checkpoints[first][0]).metadata
        asks = metadata is not None and removal.asks(metadata)
    for version in commits:
        lines = _lines(snapshot, listing.commits[version].path)
        for line in lines:
            asks = removal.asks(Metadata.parse(line["metaData"])) if "metaData" in line else asks
        if asks or any(map(removal.traces, lines)):
            yield version


def _lines(snapshot: Snapshot, path: str) -> list[Line]:
    return [orjson.loads(line) for line in snapshot.storage.read(path).splitlines() if line.strip()]


def without(protocol: Protocol, name: str) -> Protocol:
    """The protocol without the feature, by its final and preview names."""
    known = properties.feature_of(name)
    gone = {name, *(() if known is None else known.previews)}
    legacy = features.names(protocol)
    writer = (protocol.writer_features if protocol.writer >= 7 else legacy) - gone
    by_name = protocol.reader >= 3
    for_readers = {one for one in legacy if (f := properties.feature_of(one)) is not None and f.for_readers}
    reader = (protocol.reader_features if by_name else for_readers) - gone
    return Protocol(3 if reader else 1, 7, frozenset(reader), frozenset(writer))


# --- the removals ----------------------------------------------------------------------------------------------------


def _off(*names: str) -> Callable[[Metadata], Metadata]:
    return lambda metadata: metadata.with_configuration(dict.fromkeys(names))


def _unmapped(metadata: Metadata) -> Metadata:
    # Collations may have names in files. A table that is mapped no more has no places in files to ask for.
    before = schema_json.loads(metadata.schema_string)
    schema = with_voids(effective(before, "name"), before)
    assert isinstance(schema, StructType)
    cleared = _off(properties.COLUMN_MAPPING_MODE.name, properties.MAX_COLUMN_ID.name)(metadata)
    mapped = properties.COLUMN_MAPPING_MODE.of(metadata.configuration) != "none"
    return replace(cleared, schema_string=schema_json.dumps(without_keys(schema))) if mapped else cleared


def _unwidened(metadata: Metadata) -> Metadata:
    cleared = _off(properties.ENABLE_TYPE_WIDENING.name)(metadata)
    if not _widens(metadata):
        return cleared
    schema = map_fields(schema_json.loads(metadata.schema_string), lambda f: f.with_metadata({TYPE_CHANGES: None}))
    return replace(cleared, schema_string=schema_json.dumps(schema))


def _sets(known: properties.Property[Any]) -> Callable[[Metadata], bool]:
    """Whether a metaData sets a property to a value that asks for its feature."""
    return lambda metadata: known.of(metadata.configuration) in known.asks


def _has_vector(line: Line) -> bool:
    return any("deletionVector" in (line.get(action) or {}) for action in ("add", "remove"))


def _every(_: FilePart) -> bool:
    return True


def _widens(metadata: Metadata) -> bool:
    return f'"{TYPE_CHANGES}"' in metadata.schema_string


_REMOVALS: Mapping[str, _Removal] = {
    "deletionVectors": _Removal(
        _off(properties.ENABLE_DELETION_VECTORS.name),
        lambda file: file.deletion_vector is not None,
        _sets(properties.ENABLE_DELETION_VECTORS),
        traces=_has_vector,
        outlives=True,
    ),
    "columnMapping": _Removal(_unmapped, _every, _sets(properties.COLUMN_MAPPING_MODE)),
    "typeWidening": _Removal(
        _unwidened, _every, lambda metadata: _widens(metadata) or _sets(properties.ENABLE_TYPE_WIDENING)(metadata)
    ),
    "variantShredding": _Removal(
        _off(properties.ENABLE_SHREDDING.name),
        _every,
        _sets(properties.ENABLE_SHREDDING),
        rewrite=unshred_files,
        outlives=True,
    ),
    "v2Checkpoint": _Removal(
        _off(properties.CHECKPOINT_POLICY.name), asks=_sets(properties.CHECKPOINT_POLICY), checkpoints="v2"
    ),
    "vacuumProtocolCheck": _Removal(_off()),
    "inCommitTimestamp": _Removal(
        _off(properties.IN_COMMIT_TIMESTAMPS.name, properties.ICT_VERSION.name, properties.ICT_TIMESTAMP.name)
    ),
    "rowTracking": _Removal(
        _off(properties.ENABLE_ROW_TRACKING.name, properties.ROW_ID_COLUMN.name, properties.ROW_VERSION_COLUMN.name)
    ),
    "domainMetadata": _Removal(_off()),
    "checkConstraints": _Removal(_off()),
    "checkpointProtection": _Removal(_off()),
}
