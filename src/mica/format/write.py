"""Rows of a DataFrame or of a stream's batch into a table, through Spark's writers.

The rule: as every write (`write/flow.py`): the workers write files and report facts, and one commit names them, where
Spark commits. A batch of a stream is committed with the stream's id and the batch's number, so it is there once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStructType

from mica import compute as pc
from mica.engines.base import Engine
from mica.engines.local import IN_PROCESS, ended
from mica.engines.spark.lasting import set_aside
from mica.engines.spark.types import from_spark
from mica.errors import StorageError, UserError
from mica.format.brief import brief
from mica.format.options import Options, local_path
from mica.log.actions import Metadata, Protocol
from mica.log.fingerprint import replaced
from mica.log.snapshot import Snapshot, load
from mica.log.user_metadata import user_metadata
from mica.maintain.create import remade
from mica.moment import now, one_moment
from mica.records import dataclass
from mica.schema.arrow import to_arrow
from mica.schema.ddl import to_ddl
from mica.schema.evolution import plan_write
from mica.schema.new_columns import described
from mica.schema.types import TIMESTAMP, StructType
from mica.storage import Storage
from mica.tasks import lane
from mica.tasks.changed_rows import write_inserted
from mica.tasks.facts import facts_schema
from mica.tasks.rules import Rules
from mica.tasks.unshred import unshredded_schema
from mica.tasks.write import WriteSpec, write_files
from mica.variant.plain import to_variants
from mica.write import collated, compact, flow
from mica.write.commit import Commit
from mica.write.once import Txn, checked, once, repeats
from mica.write.replacement import Replacement
from mica.write.rules import refuse_given
from mica.write.target import Target, load_if_any, open_target, target_of

#: What makes times of a text without a TIMESTAMP column.
_ZONED = re.compile(r"(?i)timestamp(?!_ntz)|unixtime|current_date|curdate|\bnow\b")


@dataclass(frozen=True)
class TaskFacts(WriterCommitMessage):
    """What a task wrote: facts as an Arrow stream."""

    stream: bytes


@dataclass(frozen=True)
class Reported(flow.RowSource):
    """Facts that Spark's tasks have reported."""

    messages: Sequence[Any]

    def run(self, engine: Engine, spec: WriteSpec) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """The facts, with the minimum and maximum of collated columns."""
        batches = (batch for one in self.messages if one is not None for batch in pa.ipc.open_stream(one.stream))
        return ended(batches, *collated.reported(spec))


def _differs(snapshot: Snapshot | None, schema: StructType, partition_by: Sequence[str]) -> bool:
    """Whether a table has other columns or partitions than those of the rows, or says something else of a column."""
    if snapshot is None:
        return False
    if to_ddl(snapshot.schema) != to_ddl(schema) or list(snapshot.metadata.partition_columns) != list(partition_by):
        return True
    return described(snapshot.schema) != described(schema)


def _refuse_other_zone(replacement: Replacement, where: str) -> None:
    """Refuses a predicate that the session's zone may give another meaning: other rows would go."""
    predicate = replacement.scan.predicate
    leaves = () if predicate is None else predicate.leaves
    if any(leaf.type == TIMESTAMP for leaf in leaves) or _ZONED.search(where):
        raise UserError(
            "INVALID_ARGUMENT",
            f"replaceWhere depends on the session's time zone, which a Python data source does not see: {where}",
            hint='Add .option("timeZone", spark.conf.get("spark.sql.session.timeZone")), or use Table.overwrite.',
        )


@dataclass(frozen=True)
class Planned:
    """A write as it was planned; small, because every task gets it."""

    storage: Storage
    overwrite: bool
    where: str | None
    #: As in `target.Replaced`.
    dynamic: bool
    timezone: str
    #: The version that the write was planned at, None if it makes the table; and what it will be.
    version: int | None
    protocol: Protocol
    metadata: Metadata
    spec: WriteSpec
    #: What all expressions of the write take for the current time, in every task too.
    moment: int
    #: Whether tasks write change files too, as for a replacement that needs them.
    feeds: bool = False
    #: A text for the history.
    user_metadata: str | None = None
    #: Whether the option timeZone was given, which the tasks then follow rather than the session.
    zoned: bool = False
    #: Whether the rows replace all others, and their columns those of the table.
    remakes: bool = False

    @classmethod
    @one_moment()
    def of(
        cls,
        options: Options,
        properties: dict[str, str],
        schema: StructType,
        overwrite: bool,
        storage: Storage,
        snapshot: Snapshot | None,
    ) -> Planned:
        """The write into the table at a version. Errors: those of `Table.append` that need no row; INVALID_ARGUMENT."""
        where, partition_by = options.text("replaceWhere"), options.names("partitionBy") or []
        if where is not None and not overwrite:
            raise UserError.bad_value("replaceWhere", where, 'an option of mode("overwrite")')
        matching = [name for name in ("replaceUsing", "replaceOn") if options.text(name) is not None]
        if matching and snapshot is not None:
            raise UserError(
                "INVALID_ARGUMENT",
                f"{matching[0]} needs all rows at once, of which a Python data source sees some in each task",
                hint="Call mica.enable(spark) before, in a classic session; or use INSERT INTO … REPLACE USING (…).",
            )
        # Spark's session settings are not known here, but in the tasks, which bind the table's rules again.
        timezone = options.text("timeZone") or "UTC"
        dynamic = options.dynamic
        if where is not None and dynamic:
            raise UserError(
                "INVALID_ARGUMENT",
                f"replaceWhere ({where}) and partitionOverwriteMode=dynamic both say which rows are replaced",
                hint="Give one of them.",
            )
        remakes = options.remakes(overwrite=overwrite) and _differs(snapshot, schema, partition_by)
        target = remade(snapshot, schema, partition_by, timezone) if remakes and snapshot is not None else open_target(
            storage, snapshot, schema, partition_by, mode="overwrite" if overwrite and where is None else "append",
            properties=properties if snapshot is None else {}, dynamic=dynamic, timezone=timezone,
        )  # fmt: skip
        given = to_arrow(schema)
        if options.flag("mergeSchema"):
            target = target.evolved(schema)
        rules, feeds = target.rules(True, timezone), False
        if where is not None and target.snapshot is not None:
            replacement = Replacement(target, IN_PROCESS, where, timezone)
            if options.text("timeZone") is None:
                _refuse_other_zone(replacement, where)
            rules, feeds = replacement.rules(rules), replacement.feeds
        leaves, version = collated.comparable(target.collated, IN_PROCESS)
        spec = replace(target.write_spec(), rules=rules, collated=tuple(leaves), version=version)
        if (codec := options.codec) is not None:
            spec = replace(spec, options={**spec.options, "compression": codec})
        refuse_given(spec.schema, given.names, str(storage))
        try:
            plan_write(
                spec.schema, unshredded_schema(given, spec.schema), variants=to_variants, supplied=rules.supplied
            )
        except UserError as error:
            if error.code == "UNKNOWN_COLUMN":
                error.hint = 'Add it with .option("mergeSchema", "true"), or leave it out.'
            raise
        found = None if snapshot is None else snapshot.version
        text = options.text("userMetadata")
        return cls(
            storage, overwrite, where, dynamic, timezone, found, target.protocol, target.metadata, spec, now(), feeds,
            text, options.text("timeZone") is not None, remakes,
        )  # fmt: skip

    def target(self, latest: Snapshot | None) -> Target:
        """The table as the target of the commit: changes since the plan are conflicts, as for any writer."""
        if self.version is None:
            joins = not self.overwrite
            return Target(self.storage, None, self.protocol, self.metadata, joins=joins)
        if latest is None or latest.metadata.id != self.metadata.id or latest.version < self.version:
            raise replaced(self.storage, self.version)
        snapshot = latest if latest.version == self.version else load(self.storage, self.version)
        whole = self.overwrite and self.where is None
        target = target_of(snapshot, overwrite=whole, dynamic=self.dynamic, timezone=self.timezone)
        if (self.protocol, self.metadata) == (snapshot.protocol, snapshot.metadata):
            return target  # what stays the same is not committed, so that others may write beside it
        return replace(
            target, protocol=self.protocol, metadata=self.metadata, remakes=self.remakes, joins=not self.remakes
        )

    def write(self, batches: Iterator[pa.RecordBatch]) -> TaskFacts:
        """Writes the rows of one task."""
        set_aside()
        context = TaskContext.get()
        lane.begin(0 if context is None else context.partitionId())
        schema, sink = facts_schema(self.spec.collated), pa.BufferOutputStream()
        first = next(batches, None)
        if first is not None:
            batches = chain([first], batches)
        spec = self.spec if first is None else replace(self.spec, rules=self._rules(context, first.schema))
        with pa.ipc.new_stream(sink, schema) as stream:
            for batch in (write_inserted if self.feeds else write_files)(spec, batches):
                stream.write_batch(batch)
        return TaskFacts(sink.getvalue().to_pybytes())

    def _rules(self, context: TaskContext | None, given: pa.Schema) -> Rules:
        """The table's rules as the session evaluates expressions, like those of any other write of the session. Only
        tasks can see its settings: Spark gives them those that were set, and its zone with every TIMESTAMP column. The
        predicate of an overwrite stays as it was planned."""
        rules = self.spec.rules
        if not rules or context is None:
            return rules
        ansi = (context.getLocalProperty("spark.sql.ansi.enabled") or "true").lower() == "true"
        zones = (field.type.tz for field in given if pa.types.is_timestamp(field.type) and field.type.tz is not None)
        own = context.getLocalProperty("spark.sql.session.timeZone") or next(zones, None)
        zone = self.timezone if self.zoned or own is None else own
        if (ansi, zone) == (True, rules.timezone):
            return rules
        with one_moment(self.moment):
            found = Target(self.storage, None, self.protocol, self.metadata).rules(ansi, zone)
        asked = tuple(check for check in rules.checks if check.asked_by == "overwrite")
        return replace(found, checks=(*found.checks, *asked))

    def commit(
        self,
        latest: Snapshot | None,
        messages: Sequence[Any],
        txn: Txn | None,
        operation: str,
        parameters: dict[str, Any],
    ) -> Commit:
        """Commits what the tasks wrote, to the newest version; a repeated `txn` leaves the table as it is."""

        def committed() -> Commit:
            target = self.target(latest)
            target.applications = dict([txn] if txn is not None else ())
            target.operation, target.parameters = operation, parameters
            found: flow.RowSource = Reported(messages)
            if self.where is not None and target.snapshot is not None:
                found = Replacement(target, IN_PROCESS, self.where, self.timezone).source(found)
            with user_metadata(self.user_metadata):
                return flow.commit_changes(IN_PROCESS, target, self.spec, found)

        with one_moment(self.moment):
            done = once(self.storage, latest, txn, committed)
        if done.repeated and done.snapshot is not None and not self._named_in(done.snapshot):
            self._discard()
        return compact.afterwards(done, IN_PROCESS)

    def abort(self, messages: Sequence[Any]) -> None:
        """Deletes what the tasks wrote, if one of them failed. Spark also aborts after a commit that failed; that has
        deleted what it may, for a commit whose answer was lost may be in the log."""
        if not all(messages):
            self._discard()

    def _named_in(self, snapshot: Snapshot) -> bool:
        """Whether the log names files of this write: then it is its own commit that is repeated."""
        state = snapshot.state
        paths = [part.column("path") for part in (state.files, state.removes)]
        return any(pc.any(pc.match_substring(column, self.spec.mark)).as_py() for column in paths)

    def _discard(self) -> None:
        self.spec.storage.discard(flow.marked(self.spec))


class BatchWriter(DataSourceArrowWriter):
    """`df.write.format("mica")`."""

    def __init__(self, options: Options, properties: dict[str, str], schema: SparkStructType, overwrite: bool) -> None:
        app, version = options.text("txnAppId"), options.version("txnVersion")
        if (app is None) != (version is None):
            raise UserError.bad_value("txnAppId and txnVersion", (app, version), "both, or none of them")
        self.txn = checked((app, version)) if app is not None and version is not None else None
        storage = Storage.open(options.path, options.storage)
        snapshot = load_if_any(storage)
        self.planned = Planned.of(options, properties, rows_of(schema), overwrite, storage, snapshot)
        self.repeats = self.txn is not None and repeats(snapshot, self.txn)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes the rows of one task; none of a write that the table has already."""
        return self.planned.write(iter(()) if self.repeats else iterator)

    @brief
    def commit(self, messages: Any) -> None:
        """Commits."""
        self.planned.commit(load_if_any(self.planned.storage), messages, self.txn, "WRITE", {})

    def abort(self, messages: Any) -> None:
        """Deletes what was written."""
        self.planned.abort(messages)


@dataclass(frozen=True)
class BatchFacts(TaskFacts):
    """What a task wrote of a stream's batch, and the plan: Spark commits by another writer than the one that wrote."""

    planned: Planned


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("mica")`: Spark makes one for the tasks of each batch, and one for its commit."""

    def __init__(self, options: Options, properties: dict[str, str], schema: SparkStructType, overwrite: bool) -> None:
        self.overwrite, self.query = overwrite, query_id(options)
        storage = Storage.open(options.path, options.storage)
        self.latest = load_if_any(storage)
        self.planned = Planned.of(options, properties, rows_of(schema), overwrite, storage, self.latest)

    def __getstate__(self) -> dict[str, Any]:
        return {"planned": self.planned}  # the tasks need no more

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes the rows of one task."""
        return BatchFacts(self.planned.write(iterator).stream, self.planned)

    @brief
    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commits the batch, once."""
        parameters = {"outputMode": "Complete" if self.overwrite else "Append", "queryId": self.query}
        parameters["epochId"] = str(batchId)
        planned = next((one.planned for one in messages if one is not None), None) or self.planned
        planned.commit(self.latest, messages, (self.query, batchId), "STREAMING UPDATE", parameters)

    def abort(self, messages: Any, batchId: int) -> None:  # noqa: ARG002, N803 - as above
        """Deletes what was written, as far as a task has reported."""
        for one in messages:
            if one is not None:
                one.planned.abort(messages)
                break


def rows_of(schema: SparkStructType) -> StructType:
    """The columns of a DataFrame; a new table has them nullable, as Spark's other formats do."""
    return StructType(tuple(replace(f, nullable=True) for f in from_spark(schema).fields))


def query_id(options: Options) -> str:
    """The id of the streaming query, which its checkpoint folder keeps. Errors: INVALID_ARGUMENT."""
    place = options.text("checkpointLocation")
    if place is None:
        raise UserError(
            "INVALID_ARGUMENT",
            "a stream into format mica needs a checkpointLocation",
            hint='Use .option("checkpointLocation", folder): it makes every batch happen once.',
        )
    storage = Storage.open(local_path(place), options.storage)
    try:
        return str(json.loads(storage.read("metadata"))["id"])
    except (StorageError, ValueError, KeyError) as e:
        raise UserError(
            "INVALID_ARGUMENT",
            f"{storage.path('metadata')} does not have the id of a streaming query: {e}",
            hint="Give the folder of a Spark stream, or an empty one.",
        ) from None
