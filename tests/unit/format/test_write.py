"""The writers of the format, as Spark calls them: in several processes, and with messages that may be missing."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import DateType, IntegerType, StructType, TimestampType

import mica
from mica.errors import StorageError, UserError
from mica.format import write
from mica.format.options import Options
from mica.format.write import BatchWriter, StreamWriter
from mica.log.transaction import Transaction

SCHEMA = StructType().add("id", IntegerType())


def rows(*ids: int) -> Any:
    return iter([pa.record_batch({"id": pa.array(ids, pa.int32())})])


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def files(table: Path) -> int:
    return len(list(table.glob("*.parquet")))


def stream(folder: Path) -> StreamWriter:
    """A writer of a batch, or of its commit: Spark makes one for each."""
    (folder / "state").mkdir(exist_ok=True)
    (folder / "state" / "metadata").write_text(json.dumps({"id": "query"}))
    options = {"path": str(folder / "t"), "checkpointLocation": str(folder / "state")}
    return StreamWriter(Options.of(options), {}, SCHEMA, overwrite=False)


def test_a_batch_is_committed_by_another_writer_and_once(tmp_path: Path) -> None:
    for number in range(2):
        message = sent(sent(stream(tmp_path)).write(rows(number)))
        for _ in range(2):
            stream(tmp_path).commit([message, None], number)
    table = mica.Table.open(tmp_path / "t")
    assert (table.version, table.count(), table.snapshot.app_transactions) == (1, 2, {"query": 1})
    # A run that was killed after its commit writes the batch again.
    stream(tmp_path).commit([sent(stream(tmp_path)).write(rows(1))], 1)
    assert (table.refresh().count(), files(tmp_path / "t")) == (2, 2)
    stream(tmp_path).commit([], 2)
    assert table.refresh().snapshot.app_transactions == {"query": 2}
    metrics = dict(table.history().to_pylist()[-1]["operation_metrics"])  # delta-spark's
    assert (metrics["numOutputRows"], metrics["numAddedFiles"], metrics["numRemovedFiles"]) == ("1", "1", "0")
    assert int(metrics["numOutputBytes"]) > 0


def test_a_failed_task_leaves_no_files(tmp_path: Path) -> None:
    stream(tmp_path).commit([stream(tmp_path).write(rows(0))], 0)
    message = stream(tmp_path).write(rows(1))
    assert files(tmp_path / "t") == 2
    stream(tmp_path).abort([None, message], 1)
    assert files(tmp_path / "t") == 1
    assert mica.Table.open(tmp_path / "t").count() == 1


def test_a_commit_in_doubt_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark aborts a write whose commit failed: the log may name its files all the same."""
    writer = BatchWriter(Options.of({"path": str(tmp_path)}), {}, SCHEMA, overwrite=False)
    message = sent(writer).write(rows(1, 2))

    def lost(*_: Any) -> Any:
        raise StorageError("COMMIT_NOT_READ", "the answer is lost")

    monkeypatch.setattr(Transaction, "_reloaded", lost)
    with pytest.raises(StorageError):
        writer.commit([message])
    writer.abort([message])
    monkeypatch.undo()
    assert mica.Table.open(tmp_path).to_arrow().column("id").to_pylist() == [1, 2]


def test_a_table_that_changed_since_the_tasks_wrote_is_a_conflict(tmp_path: Path) -> None:
    stream(tmp_path).commit([stream(tmp_path).write(rows(0))], 0)
    message = stream(tmp_path).write(rows(1))
    mica.Table.open(tmp_path / "t").add_constraint("small", "id < 1")
    with pytest.raises(mica.ConflictError):
        stream(tmp_path).commit([message], 1)
    with pytest.raises(mica.UserError, match="small"):
        stream(tmp_path).write(rows(1))


def test_a_write_has_the_text_and_the_codec_of_its_options(tmp_path: Path) -> None:
    for number, options in enumerate(({"userMetadata": "run 7", "compression": "GZIP"}, {})):
        writer = BatchWriter(Options.of({"path": str(tmp_path / "t"), **options}), {}, SCHEMA, overwrite=False)
        writer.commit([writer.write(rows(number))])
    table = mica.Table.open(tmp_path / "t")
    assert table.history().column("user_metadata").to_pylist() == [None, "run 7"]
    codecs = {
        pq.ParquetFile(file).metadata.row_group(0).column(0).compression for file in (tmp_path / "t").glob("*.parquet")
    }
    assert codecs == {"GZIP", "ZSTD"}


def overwritten(path: Path, schema: StructType, row: dict[str, Any], **options: str) -> mica.Table:
    writer = BatchWriter(Options.of({"path": str(path), **options}), {}, schema, overwrite=True)
    batch = pa.RecordBatch.from_pylist([row], pa.schema([(name, pa.int32()) for name in row]))
    writer.commit([sent(writer).write(iter([batch]))])
    return mica.Table.open(path)


def test_an_overwrite_gives_a_table_its_columns(tmp_path: Path) -> None:
    """delta-spark's overwriteSchema; partitions are those of partitionBy, or none."""
    properties = {"x": "y", "delta.enableChangeDataFeed": "true"}
    before = mica.Table.create(tmp_path, "id INT NOT NULL, p INT, s STRING", ["p"], properties=properties)
    before.add_constraint("named", "s <> ''").append([{"id": 1, "p": 1, "s": "a"}])
    two = StructType().add("id", IntegerType()).add("q", IntegerType())
    with pytest.raises(UserError, match="UNKNOWN_COLUMN"):
        overwritten(tmp_path, two, {"id": 2, "q": 3})
    with pytest.raises(UserError, match=r"COLUMN_IN_USE.*'named'"):
        overwritten(tmp_path, two, {"id": 2, "q": 3}, overwriteSchema="true", partitionBy="q")
    mica.Table.open(tmp_path).drop_constraint("named")
    table = overwritten(tmp_path, two, {"id": 2, "q": 3}, overwriteSchema="true", partitionBy="q")
    assert table.to_arrow().to_pylist() == [{"id": 2, "q": 3}]
    assert (table.version, table.metadata.id, table.partition_by) == (4, before.metadata.id, ("q",))
    assert table.schema.fields[0].nullable
    assert table.properties == properties
    assert mica.Table.open(tmp_path, version=3).to_arrow().to_pylist() == [{"id": 1, "p": 1, "s": "a"}]
    (last,) = table.history(1).to_pylist()
    assert (last["operation"], dict(last["operation_parameters"])["mode"]) == ("WRITE", "Overwrite")
    assert overwritten(tmp_path, two, {"id": 3, "q": 3}, overwriteSchema="true").partition_by == ()
    log = [json.loads(line) for line in (tmp_path / "_delta_log" / f"{5:020}.json").read_text().splitlines()]
    assert sum("metaData" in action for action in log) == 1
    overwritten(tmp_path, two, {"id": 4, "q": 3}, overwriteSchema="true")
    log = [json.loads(line) for line in (tmp_path / "_delta_log" / f"{6:020}.json").read_text().splitlines()]
    assert sum("metaData" in action for action in log) == 0, "others may write beside it"


@pytest.mark.parametrize("other", [{"replaceWhere": "id = 1"}, {"partitionOverwriteMode": "dynamic"}])
def test_columns_are_replaced_with_all_rows_only(tmp_path: Path, other: dict[str, str]) -> None:
    mica.Table.create(tmp_path, "id INT, n INT")
    options = Options.of({"path": str(tmp_path), "overwriteSchema": "true", **other})
    with pytest.raises(UserError, match="overwriteSchema"):
        BatchWriter(options, {}, SCHEMA, overwrite=True)


def test_an_append_keeps_the_columns(tmp_path: Path) -> None:
    """delta-spark takes the option there, and changes nothing by it."""
    mica.Table.create(tmp_path, "id INT, n INT")
    writer = BatchWriter(Options.of({"path": str(tmp_path), "overwriteSchema": "true"}), {}, SCHEMA, overwrite=False)
    writer.commit([sent(writer).write(rows(1))])
    assert mica.Table.open(tmp_path).to_arrow().to_pylist() == [{"id": 1, "n": None}]


@pytest.mark.parametrize(
    ("where", "zone", "refused"),
    [
        ("to_date(t) = DATE'2024-01-01'", None, True),
        ("d = current_date()", None, True),
        ("to_date(t) = DATE'2024-01-01'", "America/New_York", False),
        ("d = DATE'2024-01-01' AND id > 1", None, False),
    ],
)
def test_a_predicate_that_depends_on_the_zone_needs_it(
    tmp_path: Path, where: str, zone: str | None, refused: bool
) -> None:
    # It was evaluated in UTC, and other rows were deleted than in the session's zone.
    mica.Table.create(tmp_path, "id INT, d DATE, t TIMESTAMP")
    schema = StructType().add("id", IntegerType()).add("d", DateType()).add("t", TimestampType())
    options = {"path": str(tmp_path), "replaceWhere": where, **({} if zone is None else {"timeZone": zone})}
    if not refused:
        BatchWriter(Options.of(options), {}, schema, overwrite=True)
        return
    with pytest.raises(UserError, match="time zone") as raised:
        BatchWriter(Options.of(options), {}, schema, overwrite=True)
    assert raised.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_all_tasks_of_a_write_see_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    # A constraint was bound before the default, and tasks of a session in another zone bind both again.
    context = SimpleNamespace(partitionId=lambda: 0, getLocalProperty={"spark.sql.session.timeZone": zone}.get)
    monkeypatch.setattr(write.TaskContext, "get", lambda: context)
    seconds = iter(range(1_700_000_000, 1_800_000_000))
    monkeypatch.setattr(time, "time_ns", lambda: next(seconds) * 1_000_000_000)
    table = mica.Table.create(tmp_path, "id INT, made TIMESTAMP DEFAULT now()")
    table.add_constraint("no_future", "made <= now()")
    writer = BatchWriter(Options.of({"path": str(tmp_path)}), {}, SCHEMA, overwrite=False)
    writer.commit([sent(writer).write(rows(number)) for number in range(3)])
    assert len(set(table.refresh().to_arrow()["made"].to_pylist())) == 1
