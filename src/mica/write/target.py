"""The target of a write to a table: checks the write, specifies its files, and commits them.

The rule: the table decides how it is written. Files have its schema, and Variants are shredded only if its protocol and
properties allow it. Only an evolved schema, or a table made anew, changes these, in the same commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

import numpy as np

from mica.arrays import NDArray, to_numpy
from mica.errors import ConflictError, UserError
from mica.expressions.bind import bind
from mica.log import added, creation, features, row_tracking
from mica.log.actions import Metadata, Protocol
from mica.log.column_mapping import mode_of, read_schema
from mica.log.configuration import checked
from mica.log.conflicts import FilePredicate, every_file
from mica.log.domains import (
    CLUSTERING_DOMAIN,
    COLLATIONS_DOMAIN,
    clustering_columns,
    newer_versions,
    write_versions,
)
from mica.log.snapshot import Snapshot, load
from mica.log.transaction import Transaction
from mica.properties import CODEC, ENABLE_CHANGE_DATA, SHREDDING_RULES, SKIPPING_NAMES, TARGET_FILE_SIZE
from mica.records import dataclass
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema import collations
from mica.schema.new_columns import with_new
from mica.schema.spelling import spelled
from mica.schema.types import TIMESTAMP, VARIANT, StructType, contains, variant_columns
from mica.skipping import partitions
from mica.stats.bloom_columns import bloom_columns
from mica.stats.collated import CollatedColumn
from mica.stats.columns import indexed_leaves, leaves_of, physical_name
from mica.stats.partition import column_texts, zoneless
from mica.storage import Storage
from mica.tasks.parts import FilePart
from mica.tasks.rules import Rules
from mica.tasks.shredding import Shredding
from mica.tasks.write import WriteSpec, new_mark
from mica.variant.steering import When
from mica.variant.wanted import ShreddingWishes
from mica.write.collated import bounded_columns
from mica.write.commit import Commit
from mica.write.facts import Facts, bytes_of, no_facts
from mica.write.ingested import forgotten
from mica.write.rules import numbered, rules_of

#: Conflicts (code, whether the write creates the table) after which an append retries on the winner's version.
_JOINED = {("TABLE_EXISTS", True), ("CONCURRENT_DOMAIN", False)}

Mode = Literal["append", "error", "overwrite"]


@dataclass(frozen=True)
class Replaced:
    """Files of the snapshot that an overwrite replaces. (Tasks that rewrite files name these in their facts.)"""

    #: Their positions in `snapshot.files`.
    files: NDArray[np.int64]
    #: The predicate that selects these files; a file that another writer adds is a conflict if it holds.
    reads: FilePredicate = every_file
    #: Whether the partitions of the added files are replaced, which are known when these are written.
    dynamic: bool = False
    #: Of timestamps of partitions that are spelled without a zone.
    timezone: str = "UTC"


@dataclass
class Target:
    """The table that a write changes; `snapshot` is None if the write creates it."""

    storage: Storage
    snapshot: Snapshot | None
    protocol: Protocol
    metadata: Metadata
    #: Operation and parameters in the history; the parameters of a WRITE are made here.
    operation: str = "WRITE"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    replaced: Replaced | None = None
    #: The predicate of the rows that a WRITE replaces (`write.replacement`); None: `replaced` files, or nothing.
    replaces: str | None = None
    #: What the history has of a WRITE that replaces rows which match its own (`write.replace_matching`).
    replaces_by: Mapping[str, str] = field(default_factory=dict)
    #: Whether the table is made, or made anew with other columns, or other names of them in files.
    remakes: bool = False
    #: The domain of clustering columns, if it is written: of a table that is made (anew), or whose columns are renamed.
    clustering: str | None = None
    #: The files that the result depends on, beside those that are `replaced`.
    reads: tuple[FilePredicate, ...] = ()
    #: Positions in the snapshot of files that the commit removes and no task reads.
    removes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    #: Metrics for the history, of operations other than WRITE.
    metrics: Callable[[Facts], Mapping[str, int]] | None = None
    #: Descriptors of the deletion vectors in the facts, in their order.
    vectors: Sequence[Mapping[str, Any]] = ()
    #: False if the added files have the same rows as the removed ones.
    data_change: bool = True
    #: Whether a write that creates the table may add to it if another writer creates it first.
    joins: bool = True
    notes: list[str] = field(default_factory=list)
    #: The collations with written bounds, and their version.
    versions: tuple[Sequence[str], str] | None = None
    #: Application transactions (appId → version) of the commit, for idempotent writes.
    applications: Mapping[str, int] = field(default_factory=dict)
    #: Further ones, which depend on the version that the commit follows.
    following: Callable[[Snapshot | None], Mapping[str, int]] | None = None
    _last: Transaction | None = field(default=None, repr=False)

    @property
    def schema(self) -> StructType:
        """The table's columns."""
        return read_schema(self.metadata.schema_string, mode_of(self.protocol, self.metadata))

    @property
    def variants(self) -> tuple[tuple[str, ...], ...]:
        """The Variant columns, as paths through structs; Variants in arrays and maps are never shredded."""
        return variant_columns(self.schema)

    @property
    def feeds(self) -> bool:
        """Whether the table has a change data feed, so that a change of rows needs change files
        (`tasks.changed_rows`)."""
        return ENABLE_CHANGE_DATA.of(self.metadata.configuration)

    def write_spec(
        self, shredding: Any = None, *, moment: When = "new", target_file_size: int | None = None
    ) -> WriteSpec:
        """The write spec for files of this table. `shredding` is what a call asks for; what it does not name follows
        the table's rules. Errors: those of `ShreddingWishes.of`."""
        schema = self.schema
        wanted = ShreddingWishes.of(shredding, self.variants, SHREDDING_RULES.of(self.metadata.configuration))
        variants = self.variants
        shreds = creation.shreds(self.protocol, self.metadata)
        if variants and not shreds:
            self.notes.append(
                "the table does not allow shredding (delta.enableVariantShredding is not true): Variants are written "
                "unshredded"
            )
        if variants:
            self.notes += creation.unreadable(self.metadata.configuration)
        return WriteSpec(
            storage=self.storage,
            schema=schema,
            partition_by=self.metadata.partition_columns,
            shredding=Shredding(
                variants, wanted.trees if shreds else None, wanted.steering if shreds else {}, moment=moment
            ),
            properties=self._properties(),
            materialized=features.supports(self.protocol, "materializePartitionColumns"),
            bounds=features.supports(self.protocol, "variantShredding"),
            options={
                "compression": CODEC.of(self.metadata.configuration),
                "bloom_filters": bloom_columns(schema, self.metadata.configuration),
            },
            target_file_size=target_file_size or TARGET_FILE_SIZE.of(self.metadata.configuration),
            mark=new_mark(),
            data_change=self.data_change,
            row_ids=row_tracking.to_write(self.metadata, str(self.storage)),
        )

    def rewriting_spec(self, spec: WriteSpec, timezone: str) -> WriteSpec:
        """The spec for rows of the table's own files, read in a time zone: a timestamp of a partition that the log has
        without a zone, which means another instant to readers in another one, is written as it is."""
        assert self.snapshot is not None
        schema, values = self.snapshot.schema, self.snapshot.files.column("partition_values")
        times = [name for name in self.metadata.partition_columns if schema.field(name).type == TIMESTAMP]
        found = {n: zoneless(column_texts(values, physical_name(schema.field(n))), timezone) for n in times}
        return replace(spec, spelled={name: texts for name, texts in found.items() if texts})

    def _properties(self) -> dict[str, str]:
        """The properties as files are written: clustering columns have statistics in any case (PROTOCOL.md, "Writer
        Requirements for Clustered Table").
        """
        configuration = dict(self.metadata.configuration)
        domain = self.clustering
        if domain is None and self.snapshot is not None and not self.remakes:
            domain = self.snapshot.domains.get(CLUSTERING_DOMAIN)
        wanted = clustering_columns(domain)
        if wanted:
            partitions = self.metadata.partition_columns
            kept = indexed_leaves(self.schema, configuration, partitions)
            more = [leaf for leaf in leaves_of(self.schema, partitions) if leaf.names in wanted and leaf not in kept]
            if more:
                configuration[SKIPPING_NAMES.name] = ", ".join(spelled(leaf.column) for leaf in (*kept, *more))
        return configuration

    def rules(self, ansi: bool, timezone: str) -> Rules:
        """What the table asks of new rows, as the session evaluates expressions. Errors: those of `rules_of`."""
        table = str(self.storage)
        configuration = self.metadata.configuration
        return rules_of(self.schema, configuration, table, ansi=ansi, timezone=timezone, every_default=False)

    def evolved(self, given: StructType, kept: Mapping[str, str] | None = None) -> Target:
        """The target with the columns and nested fields of `given` that the table lacks, and with more properties. The
        commit of the write changes the schema. Errors: UNSUPPORTED_TYPE.
        """
        schema = with_new(self.schema, given)
        if self.snapshot is None or (schema is self.schema or schema == self.schema):
            return self
        protocol, metadata = creation.altered(self.protocol, self.metadata, schema=schema, changes=kept)
        return replace(self, protocol=protocol, metadata=metadata)

    @property
    def alters(self) -> bool:
        """Whether the commit changes the table whatever rows are written: it makes the table, gives it other columns,
        removes files, or forgets ingested ones."""
        if self.snapshot is None or self.remakes or self.metadata is not self.snapshot.metadata or len(self.removes):
            return True
        if self.replaced is None or self.replaced.dynamic:
            return False
        return len(self.replaced.files) > 0 or bool(forgotten(self.snapshot.app_transactions))

    @property
    def certainly_not_written(self) -> bool:
        """Whether it is certain that no log names the written files."""
        return self._last is None or self._last.certainly_not_written

    @property
    def collated(self) -> list[CollatedColumn]:
        """The columns that get collated bounds, if the engine can compare their strings."""
        metadata = self.metadata
        return bounded_columns(self.schema, self.protocol, metadata.configuration, metadata.partition_columns)

    def commit(self, facts: Facts) -> Commit:
        """Adds the written files and removes the replaced ones, in one commit."""
        if self.snapshot is not None and self.replaced is not None and self.replaced.dynamic:
            reads = partitions.those_of(
                self.schema, self.metadata.partition_columns, facts.files, timezone=self.replaced.timezone
            )
            files = np.flatnonzero(to_numpy(reads(self.snapshot.files)))
            self.replaced = replace(self.replaced, files=files, reads=reads)
        try:
            self._last = self.transaction(facts)
            done = self._last.commit(clock=time.time)
        except ConflictError as e:
            rests = self._last is None or self._last.rests_on_files
            if rests or not self.joins or (e.code, self.snapshot is None) not in _JOINED:
                raise
            # Another writer created the table first, or recorded the same version of a collation: this write becomes
            # an append to the current version, if it is the same table.
            self._last = self._joined(e).transaction(facts)
            done = self._last.commit(clock=time.time)
        metrics = {} if self.metrics is None else dict(self._last.metrics)
        return Commit(done.version, facts.files.num_rows, facts.rows, facts.bytes, done.snapshot, metrics)

    def commit_nothing(self) -> Commit:
        """The result of a write that changes nothing. Only the version of an application is committed: rows that others
        add later are no part of the write, so it must not run again."""
        assert self.snapshot is not None
        if self.applications:
            return self.commit(no_facts())
        return Commit(self.snapshot.version, 0, 0, snapshot=self.snapshot)

    def transaction(self, facts: Facts) -> Transaction:
        """The transaction that commits these facts."""
        parameters, metrics = self._described(facts)
        transaction = Transaction(
            self.storage if self.snapshot is None else self.snapshot,
            self.operation,
            parameters,
            metrics=metrics,
        )
        metadata = numbered(self.metadata, facts.numbers)
        clustered = self.snapshot is not None and CLUSTERING_DOMAIN in self.snapshot.domains
        if self.remakes:
            transaction.watch(CLUSTERING_DOMAIN)  # what another clusters by meanwhile may be gone
        if self.clustering is not None or (self.remakes and clustered):
            transaction.set_domain(CLUSTERING_DOMAIN, self.clustering)
        if self.snapshot is None or metadata is not self.snapshot.metadata:
            transaction.update_protocol(self.protocol)
            transaction.update_metadata(metadata)
        if self.snapshot is not None and self.replaced is not None:
            transaction.read(self.replaced.reads)
            transaction.remove_files(self.replaced.files)
            if not self.replaced.dynamic:
                transaction.set_application_transactions(forgotten(self.snapshot.app_transactions))
        for reads in self.reads:
            transaction.read(reads)
        if self.vectors and self.snapshot is not None:
            places = to_numpy(facts.vectors.column("file"))
            transaction.remove_files(places)
            transaction.add_files(added.with_vectors(self.snapshot, places, self.vectors))
        if len(self.removes):
            transaction.remove_files(self.removes, data_change=self.data_change)
        if len(facts.removed):
            transaction.remove_files(facts.removed, data_change=self.data_change)
        transaction.add_files(facts.files)
        if facts.changes.num_rows:
            transaction.add_changes(facts.changes.select(["path", "partition_values", "size"]))
        transaction.set_application_transactions(self.applications, self.following)
        if self.versions is not None:
            before = {} if self.snapshot is None else self.snapshot.domains
            domain = newer_versions(self.protocol, before, *self.versions, str(self.storage))
            if domain is not None:
                transaction.set_domain(COLLATIONS_DOMAIN, domain)
        return transaction

    def _described(self, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
        """Parameters and metrics of the commit for the history."""
        writes = self.operation == "WRITE"
        parameters = self._write_parameters() if writes else dict(self.parameters)
        metrics = self.metrics or _METRICS.get(self.operation, _rewrite_metrics)
        return parameters, {**metrics(facts), **self._replaced_metrics()}

    def _replaced_metrics(self) -> dict[str, int]:
        """What an overwrite takes away, as delta-spark counts it; where a predicate does, `metrics` has it."""
        if self.snapshot is None or self.replaced is None:
            return {}
        files = self.replaced.files
        return {"numRemovedFiles": len(files), "numRemovedBytes": bytes_of(self.snapshot.files, files)}

    def _write_parameters(self) -> dict[str, Any]:
        """The parameters of a WRITE, as delta-spark names them."""
        appends = self.replaced is None and self.replaces is None and not self.replaces_by
        parameters: dict[str, Any] = {"mode": "Append" if appends else "Overwrite"}
        if self.snapshot is None or self.metadata.partition_columns:
            parameters["partitionBy"] = list(self.metadata.partition_columns)
        if self.replaced is not None and self.replaced.dynamic:
            parameters["isDynamicPartitionOverwrite"] = True
        if self.replaces is not None:
            parameters["predicate"] = self.replaces
        return {**parameters, **self.replaces_by}

    def _joined(self, error: ConflictError) -> Target:
        snapshot = load(self.storage)
        mine, theirs = (m.schema_string for m in (self.metadata, snapshot.metadata))
        same = self.snapshot is None or self.snapshot.metadata.id == snapshot.metadata.id
        same = same and mine == theirs and snapshot.metadata.partition_columns == self.metadata.partition_columns
        if not same or snapshot.metadata.configuration != self.metadata.configuration:
            raise error
        before = {} if self.snapshot is None else self.snapshot.app_transactions
        if any(snapshot.app_transactions.get(app) != before.get(app) for app in self.applications):
            did = "created the table" if self.snapshot is None else "recorded a collation"
            raise ConflictError(
                "CONCURRENT_TRANSACTION",
                f"another writer {did} at {self.storage} meanwhile and wrote for the same application",
                hint="Nothing was written. Repeat the operation.",
                version=snapshot.version,
            ) from error
        return replace(self, snapshot=snapshot, protocol=snapshot.protocol, metadata=snapshot.metadata)


def write_metrics(facts: Facts) -> dict[str, int]:
    """The metrics of a WRITE, as delta-spark names them."""
    return {"numFiles": facts.files.num_rows, "numOutputRows": facts.rows, "numOutputBytes": facts.bytes}


def _rewrite_metrics(facts: Facts) -> dict[str, int]:
    return {"numRemovedFiles": len(facts.removed), "numAddedFiles": facts.files.num_rows}


def _stream_metrics(facts: Facts) -> dict[str, int]:
    return {"numOutputRows": facts.rows, "numOutputBytes": facts.bytes, **_rewrite_metrics(facts)}


#: The metrics of commits whose writer counts nothing of its own, by operation.
_METRICS: Mapping[str, Callable[[Facts], dict[str, int]]] = {
    "WRITE": write_metrics,
    "STREAMING UPDATE": _stream_metrics,
}


def open_target(
    storage: Storage,
    snapshot: Snapshot | None,
    schema: StructType,
    partition_by: Sequence[str],
    *,
    mode: Mode,
    properties: Mapping[str, str],
    dynamic: bool = False,
    timezone: str = "UTC",
    kept: Mapping[str, str] | None = None,
) -> Target:
    """The table at this version or, if there is none, a new one of `schema`; `kept` are properties that only a new
    table gets.

    Errors: TABLE_EXISTS with mode `error`; INVALID_PARTITION_COLUMN if an existing table has other partition columns;
    those of `features.check_write`.
    """
    if snapshot is None:
        made = {**(kept or {}), **properties}
        protocol, metadata = creation.new_table(schema, partition_by, made, created_time=int(time.time() * 1000))
        return Target(storage, None, protocol, metadata, joins=mode == "append")
    if mode == "error":
        raise UserError(
            "TABLE_EXISTS", f"a table already exists at {storage}", hint="Use mode='append' or 'overwrite'."
        )
    features.check_write(snapshot.protocol, snapshot.metadata, str(storage))
    snapshot.check_partition_columns()
    _check_variants(snapshot)
    if collations.check(snapshot.schema, str(storage)):
        write_versions(snapshot.domains.get(COLLATIONS_DOMAIN), str(storage))
    found = snapshot.metadata
    if partition_by and [n.lower() for n in partition_by] != [n.lower() for n in found.partition_columns]:
        by = ", ".join(found.partition_columns) or "no column"
        raise UserError(
            "INVALID_PARTITION_COLUMN",
            f"{storage} is partitioned by {by}, and partition_by names {', '.join(partition_by)}",
            hint="Leave partition_by out: an existing table keeps its partition columns.",
        )
    wrong = {n: v for n, v in checked(properties).items() if found.configuration.get(n) != v}
    if wrong:
        raise UserError(
            "TABLE_EXISTS",
            f"a table already exists at {storage}, with other values for the properties {wrong}",
            hint="Change them with Table.set_properties.",
        )
    target = Target(storage, snapshot, snapshot.protocol, found)
    if mode == "overwrite":
        files = np.arange(snapshot.files.num_rows)
        target.replaced = Replaced(files, dynamic=dynamic and bool(found.partition_columns), timezone=timezone)
    return target


def _check_variants(snapshot: Snapshot) -> None:
    """Readers know by the feature that files hold Variants; delta-spark writes them without it."""
    if contains(snapshot.schema, VARIANT) and not features.supports(snapshot.protocol, "variantType"):
        raise UserError(
            "FEATURE_NEEDED",
            f"{snapshot.storage} has VARIANT columns, and its protocol does not have the table feature variantType",
            hint='Add it first: set_properties({"delta.feature.variantType": "supported"}).',
        )


def target_of(
    snapshot: Snapshot,
    txn: tuple[str, int] | None = None,
    *,
    overwrite: bool = False,
    dynamic: bool = False,
    timezone: str = "UTC",
) -> Target:
    """The table at this version as the target of a write, which commits the version of an application (`txn`) with it.
    Errors: those of `open_target`.
    """
    mode: Mode = "overwrite" if overwrite else "append"
    target = open_target(
        snapshot.storage,
        snapshot,
        snapshot.schema,
        (),
        mode=mode,
        properties={},
        dynamic=dynamic,
        timezone=timezone,
    )
    target.applications = dict([txn] if txn is not None else ())
    return target


def load_if_any(storage: Storage) -> Snapshot | None:
    """The newest version of the table, or None if there is no table."""
    try:
        return load(storage)
    except UserError as e:
        if e.code == "TABLE_NOT_FOUND":
            return None
        raise


def files_in(scan: Scan, where: str | None) -> list[FilePart]:
    """The files to write again of the partitions of the scan's table that `where` selects; None: of all. Errors:
    NOT_A_PARTITION_PREDICATE for one that uses other columns."""
    source = scan.source
    assert isinstance(source, TableSource)
    files = source.rewritten()
    if where is None:
        return files
    names = source.partition_by
    bound = bind(where, source.schema, partition_columns=names, ansi=scan.ansi, timezone=scan.timezone)
    for leaf in bound.leaves:
        if not leaf.partition:
            raise UserError(
                "NOT_A_PARTITION_PREDICATE",
                f"{where!r} uses {'.'.join(leaf.column)}, which is not a partition column",
                hint=f"Partition columns are: {', '.join(names) or 'none'}.",
            )
    chosen = partitions.holds(bound, source.schema, source.snapshot.files.column("partition_values"))
    return [file for file, wanted in zip(files, chosen.to_pylist(), strict=True) if wanted]
