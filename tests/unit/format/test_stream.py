"""Places of a stream: a batch has the same files whenever it is read again, also the first one after it was killed."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles
from pyspark.sql.types import IntegerType, StructType

import mica
from mica.errors import UserError
from mica.format.options import Options
from mica.format.read import spark_schema
from mica.format.source import MicaSource
from mica.format.stream import StreamPlace, StreamReader


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    made = mica.Table.create(tmp_path, "id INT")
    for number in range(4):
        made.append(pa.table({"id": pa.array([number], pa.int32())}))
    return made


def _reader(table: mica.Table, **options: str) -> StreamReader:
    return StreamReader(Options({"path": str(table.path), **options}), StructType().add("id", IntegerType()))


def _kept(offset: dict[str, Any]) -> dict[str, Any]:
    """What Spark gives back of an offset."""
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def _ids(reader: StreamReader, start: Any, end: Any) -> list[int]:
    parts = reader.partitions(start, end)
    return [row for part in parts for batch in reader.read(part) for row in batch.column("id").to_pylist()]


@pytest.mark.parametrize("files", ["1", "5", "100"])
@pytest.mark.parametrize("options", [{}, {"startingversion": "latest"}, {"startingversion": "2"}])
def test_a_first_batch_that_was_killed_has_its_rows_again(
    table: mica.Table, files: str, options: dict[str, str]
) -> None:
    options = {"maxfilespertrigger": files, **options}
    first = _reader(table, **options)
    start = _kept(first.initialOffset())
    for number in range(4, 7):  # some come before the end of the first batch is known
        table.append(pa.table({"id": pa.array([number], pa.int32())}))
    end = _kept(first.latestOffset(start, ReadMaxFiles(1)))
    rows = _ids(first, start, end)
    assert rows
    for number in range(7, 9):
        table.append(pa.table({"id": pa.array([number], pa.int32())}))
    again = _reader(table, **options)
    assert _ids(again, _kept(again.initialOffset()), end) == rows
    rest = _kept(again.latestOffset(end, ReadAllAvailable()))
    every = [*rows, *_ids(again, end, rest)]
    assert sorted(every) == list(range(9))[{"latest": 4, "2": 1}.get(options.get("startingversion", ""), 0) :]


@pytest.mark.parametrize("files", [1, 4, 5])
def test_the_checkpoint_of_an_earlier_mica_lacks_where_the_stream_began(table: mica.Table, files: int) -> None:
    first = _reader(table, maxfilespertrigger=str(files))
    start = first.initialOffset()
    table.append(pa.table({"id": pa.array([4], pa.int32())}))
    end = first.latestOffset(start, ReadMaxFiles(files))
    rows = _ids(first, start, end)
    table.append(pa.table({"id": pa.array([5], pa.int32())}))
    again = _reader(table)
    del end["began"]
    assert _ids(again, again.initialOffset(), end) == rows
    assert len(rows) == files


def test_an_offset_of_another_source_is_refused() -> None:
    for offset in (
        {},
        {"table": "t", "version": "x", "file": 0, "initial": True},
        {"table": "t", "version": 1, "began": []},
    ):
        with pytest.raises(UserError, match="no place in a table of mica"):
            StreamPlace.of(offset)


#: As delta-spark 4.4.0 keeps its place before the commit of version 3.
_OF_DELTA = {"sourceVersion": 1, "reservoirVersion": 3, "index": -1, "isStartingVersion": False}


def test_a_stream_goes_on_where_one_of_delta_spark_ended(table: mica.Table) -> None:
    reader = _reader(table)
    here = {**_OF_DELTA, "reservoirId": table.metadata.id}
    there = _kept(reader.latestOffset(here, ReadAllAvailable()))
    assert sorted(_ids(reader, here, there)) == [2, 3]
    assert _ids(reader, here, {**here, "reservoirVersion": 4}) == [2], "a batch that delta-spark began"
    with pytest.raises(UserError, match="STREAM_CHANGED"):
        reader.latestOffset({**here, "reservoirId": "other"}, ReadAllAvailable())


@pytest.mark.parametrize("place", [{"index": 0}, {"isStartingVersion": True}, {"sourceVersion": 3}])
def test_delta_spark_s_place_within_a_version_is_refused(place: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="has read a part of version 3") as raised:
        StreamPlace.of({**_OF_DELTA, "reservoirId": "t", **place})
    assert 'format("delta")' in str(raised.value.hint)


def test_a_stream_whose_first_rows_can_no_longer_be_listed_says_what_to_do(table: mica.Table) -> None:
    first = _reader(table, maxfilespertrigger="1")
    here = _kept(first.latestOffset(_kept(first.initialOffset()), ReadMaxFiles(1)))
    table.append([{"id": 4}])
    table.checkpoint()
    for version in range(table.version):
        (Path(table.path) / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(UserError, match="VERSION_EXPIRED") as raised:
        _reader(table).latestOffset(here, ReadMaxFiles(1))
    assert "checkpointLocation of its own" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("option", "after_delete", "after_change"),
    [
        ("ignoreDeletes", [0, 1, 2, 3], None),
        ("ignoreChanges", [0, 1, 2, 3], [0, 1, 2, 3, 3]),
        ("skipChangeCommits", [0, 1, 2, 3], [0, 1, 2, 3]),
        ("failOnDataLoss", None, None),
    ],
)
def test_commits_that_remove_files_are_what_the_options_say(
    tmp_path: Path, option: str, after_delete: list[int] | None, after_change: list[int] | None
) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    for first in (0, 2):
        table.append(pa.table({"id": pa.array([first, first + 1], pa.int32())}))
    for change, wanted in (("id < 2", after_delete), ("id = 2", after_change)):  # a file goes; one is written again
        table.delete(change)
        reader = _reader(table, startingversion="0", **{option.lower(): "true"})
        start = reader.initialOffset()
        if wanted is None:
            with pytest.raises(UserError, match="deleted or changed rows") as raised:
                reader.latestOffset(start, ReadAllAvailable())
            assert "ignoreChanges" in str(raised.value.hint)
        else:
            assert sorted(_ids(reader, start, reader.latestOffset(start, ReadAllAvailable()))) == wanted


@pytest.mark.parametrize("option", ["skipchangecommits", "ignoredeletes", "ignorechanges", "failondataloss"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_merge_that_only_inserts_is_new_rows_beside_a_change_feed(tmp_path: Path, option: str, vectors: str) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": vectors}
    table = mica.Table.create(tmp_path, "id INT", properties=properties)
    table.append([{"id": 1}])
    merge = table.merge([{"id": 2}], "target.id = source.id")
    merge.when_matched_update({"id": "source.id"}).when_not_matched_insert_all().execute()
    assert '"cdc"' in (tmp_path / "_delta_log" / f"{2:020}.json").read_text()
    reader = _reader(table, startingversion="0", **{option: "true"})
    start = reader.initialOffset()
    assert sorted(_ids(reader, start, reader.latestOffset(start, ReadAllAvailable()))) == [1, 2]


@pytest.mark.parametrize("name", ["versionasof", "timestampasof", "endingversion", "endingtimestamp"])
def test_a_stream_is_of_no_older_version(table: mica.Table, name: str) -> None:
    with pytest.raises(UserError, match="reads in a batch"):
        _reader(table, **{name: "1"})


def _columns(reader: StreamReader, start: Any, end: Any) -> list[dict[str, Any]]:
    parts = reader.partitions(start, end)
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def _opened(table: mica.Table, **options: str) -> StreamReader:
    given = Options({"path": str(table.path), **options})
    return StreamReader(given, spark_schema(mica.Table.open(table.path), given))


def test_a_stream_that_is_started_again_goes_on_over_several_changes_of_columns(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a INT", properties={"delta.columnMapping.mode": "name"})
    first = _opened(table)
    start = _kept(first.initialOffset())
    here = _kept(first.latestOffset(start, ReadAllAvailable()))
    table.append([{"a": 1}])
    table.add_columns("b INT").append([{"a": 2, "b": 2}])
    table.add_columns("c INT").rename_column("a", "d").append([{"d": 3, "b": 3, "c": 3}])
    again = _opened(table)
    rows = _columns(again, here, _kept(again.latestOffset(here, ReadAllAvailable())))
    assert rows == [{"d": 1, "b": None, "c": None}, {"d": 2, "b": 2, "c": None}, {"d": 3, "b": 3, "c": 3}]


def test_a_stream_goes_on_over_new_values_of_an_identity_column(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "i BIGINT GENERATED ALWAYS AS IDENTITY, a INT")
    running = _opened(table)
    start = _kept(running.initialOffset())
    here = _kept(running.latestOffset(start, ReadAllAvailable()))
    for number in range(3):
        table.append([{"a": number}])
    for reader in (running, _opened(table)):
        rows = _columns(reader, here, _kept(reader.latestOffset(here, ReadAllAvailable())))
        assert [row["a"] for row in rows] == [0, 1, 2]


@pytest.mark.parametrize("options", [{}, {"readchangefeed": "true"}])
def test_a_running_stream_ends_where_a_column_comes(tmp_path: Path, options: dict[str, str]) -> None:
    """Without the error the values of the new column were left out of the feed."""
    table = mica.Table.create(tmp_path, "a INT", properties={"delta.enableChangeDataFeed": "true"})
    running = _opened(table, **options)
    here = _kept(running.latestOffset(_kept(running.initialOffset()), ReadAllAvailable()))
    table.add_columns("b INT").append([{"a": 1, "b": 1}])
    with pytest.raises(UserError, match="STREAM_CHANGED"):
        running.latestOffset(here, ReadAllAvailable())


@pytest.mark.parametrize("options", [{}, {"maxfilespertrigger": "1"}])
def test_rows_from_before_other_columns_are_not_read_as_nulls(tmp_path: Path, options: dict[str, str]) -> None:
    table = mica.Table.create(tmp_path, "a INT", properties={"delta.columnMapping.mode": "name"})
    first = _opened(table, **options)
    here = _kept(first.latestOffset(_kept(first.initialOffset()), ReadAllAvailable()))
    table.append([{"a": 1}])
    table.drop_feature("columnMapping")
    again = _opened(table, skipchangecommits="true", **options)
    with pytest.raises(UserError, match="STREAM_CHANGED"):
        again.latestOffset(here, ReadMaxFiles(1))


def test_a_stream_of_changes_does_not_begin_before_the_feed(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a INT")
    table.append([{"a": 1}])
    table.append([{"a": 2}])
    table.set_properties({"delta.enableChangeDataFeed": "true"})
    reader = _opened(table, readchangefeed="true", startingversion="1")
    with pytest.raises(UserError, match="CHANGES_NOT_RECORDED"):
        reader.latestOffset(_kept(reader.initialOffset()), ReadMaxFiles(1))


def test_a_stream_of_changes_that_are_not_recorded_names_the_version(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a INT")
    reader = _opened(table, readchangefeed="true", startingversion="latest")
    here = _kept(reader.latestOffset(_kept(reader.initialOffset()), ReadAllAvailable()))
    table.append([{"a": 1}])
    with pytest.raises(UserError, match="so the changes of version 1 were not recorded"):
        reader.latestOffset(here, ReadAllAvailable())


def test_a_stream_of_changes_does_not_begin_with_the_rows_of_a_table_that_records_none(table: mica.Table) -> None:
    """It would end at the next commit, and could not go on from there."""
    with pytest.raises(UserError, match=r"CHANGES_NOT_RECORDED.* would end at its next commit"):
        _reader(table, readchangefeed="true").initialOffset()


def test_columns_with_the_names_of_a_feed_are_the_tables_own(tmp_path: Path) -> None:
    ddl = "id INT, _change_type STRING, _commit_version BIGINT, _commit_timestamp INT"
    table = mica.Table.create(tmp_path, ddl, ["_commit_timestamp"])
    rows = [{"id": 1, "_change_type": "delete", "_commit_version": 77, "_commit_timestamp": 4}]
    table.append(rows)
    for options in ({}, {"startingversion": "0"}):
        reader = _opened(table, **options)
        start = reader.initialOffset()
        assert _columns(reader, start, reader.latestOffset(start, ReadAllAvailable())) == rows


def test_a_stream_that_began_before_a_column_came_is_refused(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    source = MicaSource({"path": str(tmp_path)})
    loaded = source.schema()  # Spark keeps it, and the object
    source = pickle.loads(pickle.dumps(source))
    table.alter_column("id", comment="says nothing of rows")
    assert isinstance(source.streamReader(loaded), StreamReader)
    table.add_columns("x STRING")
    with pytest.raises(UserError, match=r"STREAM_CHANGED.*those that load"):
        source.streamReader(loaded)
    assert isinstance(MicaSource({"path": str(tmp_path)}).streamReader(loaded), StreamReader), "the user chose columns"


def test_rows_of_the_beginning_have_the_time_in_their_commit(tmp_path: Path) -> None:
    on = {"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true"}
    table = mica.Table.create(tmp_path, "id INT", properties=on)
    table.append([{"id": 1}])
    os.utime(tmp_path / "_delta_log" / f"{1:020}.json", (1e9, 1e9))  # a copied table
    reader = _opened(mica.Table.open(tmp_path), readchangefeed="true")
    start = _kept(reader.initialOffset())
    (row,) = _columns(reader, start, _kept(reader.latestOffset(start, ReadAllAvailable())))
    assert row["_commit_timestamp"].timestamp() * 1000 == table.snapshot.timestamp


def test_versions_of_one_second_have_the_times_of_the_history(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableChangeDataFeed": "true"})
    for number in range(5):
        table.append([{"id": number}])
    for log in (tmp_path / "_delta_log").glob("*.json"):
        os.utime(log, (1.7e9, 1.7e9))  # as in a store that knows whole seconds
    when = {row["version"]: row["timestamp"] for row in mica.Table.open(tmp_path).history().to_pylist()}
    reader = _opened(table, readchangefeed="true", startingversion="4")
    start = _kept(reader.initialOffset())
    found = _columns(reader, start, _kept(reader.latestOffset(start, ReadAllAvailable())))
    assert {row["_commit_version"]: row["_commit_timestamp"] for row in found} == {at: when[at] for at in (4, 5)}


def test_a_remove_needs_no_size(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableChangeDataFeed": "true"})
    table.append([{"id": 1}])
    table.delete()
    log = tmp_path / "_delta_log" / f"{2:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("remove", {}).pop("size", None)
    log.write_text("\n".join(map(json.dumps, lines)))
    reader = _reader(table, startingversion="0", readchangefeed="true", maxbytespertrigger="1")
    place = reader.initialOffset()
    for _ in range(4):
        place = _kept(reader.latestOffset(_kept(place), ReadMaxBytes(1)))
    assert (place["version"], place["file"]) == (3, 0)


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("limit", [{"maxfilespertrigger": "2"}, {"maxbytespertrigger": "1"}])
def test_what_an_update_found_and_left_is_in_one_batch(tmp_path: Path, vectors: str, limit: dict[str, str]) -> None:
    """Whole files come as the limit says, changes of rows all at once, as in delta-spark."""
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": vectors}
    table = mica.Table.create(tmp_path, "id INT, p INT", ["p"], properties=properties)
    table.append([{"id": number, "p": number} for number in range(4)])
    table.update({"id": "id + 10"}, "p > 0")
    table.append([{"id": 4, "p": 4}])
    reader = _opened(table, readchangefeed="true", startingversion="0", **limit)
    reading = ReadMaxBytes(1) if "maxbytespertrigger" in limit else ReadMaxFiles(2)
    batches, here = [], _kept(reader.initialOffset())
    while (there := _kept(reader.latestOffset(here, reading))) != here:
        batches.append([(row["_commit_version"], row["id"]) for row in _columns(reader, here, there)])
        here = there
    first = [1, 1, 1, 1] if "maxbytespertrigger" in limit else [2, 2]
    assert [len(batch) for batch in batches] == [*first, 6, 1]
    assert sorted(batches[-2]) == [(2, number) for number in (1, 2, 3, 11, 12, 13)]


def test_a_stream_takes_no_path_with_a_version(table: mica.Table) -> None:
    with pytest.raises(UserError, match="a stream goes on with the table"):
        StreamReader(Options({"path": f"{table.path}@v1"}), StructType().add("id", IntegerType()))


def test_a_stream_may_pass_over_what_was_cleaned_up(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    start = _kept(_reader(table, startingversion="0").initialOffset())
    for number in range(4):
        table.append([{"id": number}])
    table.checkpoint()
    table.append([{"id": 4}])
    for version in range(3):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    for options in ({}, {"failondataloss": "true"}):
        with pytest.raises(UserError, match=r"version 0 of .* was cleaned up") as raised:
            _reader(table, **options).latestOffset(start, ReadAllAvailable())
        assert "failOnDataLoss=false" in str(raised.value.hint)
    reader = _reader(table, failondataloss="false")
    assert sorted(_ids(reader, start, _kept(reader.latestOffset(start, ReadAllAvailable())))) == [2, 3, 4]


def test_a_table_that_was_put_back_from_a_copy_loses_no_rows(table: mica.Table, tmp_path: Path) -> None:
    """Commits that take the numbers of those that were read would be left out."""
    log = Path(table.path) / "_delta_log"
    reader = _reader(table)
    here = _kept(reader.latestOffset(_kept(reader.initialOffset()), ReadAllAvailable()))
    assert _kept(reader.latestOffset(here, ReadAllAvailable())) == here
    for version in (3, 4):
        (log / f"{version:020}.json").unlink()
    mica.Table.open(table.path).append([{"id": 7}])
    for again in (reader, _reader(table)):
        with pytest.raises(UserError, match=r"is at version 3, and this stream has read version 4") as raised:
            again.latestOffset(here, ReadAllAvailable())
        assert "checkpointLocation of its own" in str(raised.value.hint)
    passing = _reader(table, failondataloss="false")
    assert _kept(passing.latestOffset(here, ReadAllAvailable())) == here
