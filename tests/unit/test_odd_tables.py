"""Tables with what nobody should have written, and columns that nothing can hold: an error with a name, or the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import mica
from mica.errors import CorruptDataError, MicaError, UserError


def rows() -> pa.Table:
    return pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", "b"]})


def change(table: Path, version: int, change: Callable[[str, dict[str, Any]], None]) -> None:
    path = table / "_delta_log" / f"{version:020}.json"
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        for kind, action in line.items():
            change(kind, action)
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


@pytest.mark.parametrize("where", ["NULL <= NULL", "NULL = NULL", "NULL BETWEEN NULL AND NULL", "NULL <=> NULL"])
def test_constants_of_no_type_are_compared_as_spark_compares_them(tmp_path: Path, where: str) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, s STRING")
    table.append(rows())
    expected = "<=>" in where
    assert table.scan(where=where).count() == (2 if expected else 0)
    shown = table.scan(columns={"x": where}).to_arrow()["x"].to_pylist()
    assert shown == [True if expected else None] * 2


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("a\0b", pa.int64())]),
        pa.schema([("s", pa.struct([("x\0", pa.int64())]))]),
        pa.schema([("l", pa.list_(pa.struct([("\0", pa.int64())])))]),
        pa.schema([("n", pa.null())]),
        pa.schema([("id", pa.int64()), ("s", pa.struct([("n", pa.null())]))]),
        pa.schema([("m", pa.map_(pa.string(), pa.null()))]),
    ],
    ids=str,
)
def test_columns_that_no_file_could_hold_are_refused(tmp_path: Path, schema: pa.Schema) -> None:
    with pytest.raises(UserError) as caught:
        mica.Table.create(tmp_path / "t", schema)
    assert caught.value.code in ("INVALID_NAME", "UNSUPPORTED_TYPE")
    assert not (tmp_path / "t" / "_delta_log").exists()
    table = mica.Table.create(tmp_path / "t", "id BIGINT")
    with pytest.raises(UserError):
        table.add_columns("n VOID")


def test_void_columns_of_others_are_skipped_as_the_protocol_asks(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, s STRING")

    def more(kind: str, action: dict[str, Any]) -> None:
        if kind == "metaData":
            schema = orjson.loads(action["schemaString"])
            kinds = (("x", "void"), ("y", "long"))
            fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds]
            inner = {"type": "struct", "fields": fields}
            for name, type_ in (("n", "void"), ("o", inner)):
                schema["fields"].append({"name": name, "type": type_, "nullable": True, "metadata": {}})
            action["schemaString"] = orjson.dumps(schema).decode()

    change(tmp_path / "t", 0, more)
    table = mica.Table.open(tmp_path / "t")
    assert table.schema.names == ["id", "s", "o"]
    table.append(rows().append_column("o", pa.array([{"y": 1}, None], pa.struct([("y", pa.int64())]))))
    assert table.scan(where="id = 1").to_arrow().to_pylist() == [{"id": 1, "s": "a", "o": {"y": 1}}]


@pytest.mark.parametrize("size", [-1, 0, 5, 2**40, 2**62, 2**63 - 1])
def test_a_size_that_is_not_the_file_s_is_an_error_before_anything_is_sized_by_it(tmp_path: Path, size: int) -> None:
    mica.Table.create(tmp_path / "t", "id BIGINT, s STRING").append(rows())
    change(tmp_path / "t", 1, lambda kind, action: action.update(size=size) if kind == "add" else None)
    table = mica.Table.open(tmp_path / "t")
    for read in (lambda: table.scan().to_arrow(), lambda: table.scan(where="id = 1").count()):
        with pytest.raises(CorruptDataError, match=r"part-.*\.parquet"):
            read()
    try:
        assert [found.kind for found in mica.check(tmp_path / "t")] == ["file_size"]
    except MicaError:
        assert size < 0


def test_an_empty_partition_value_is_null(tmp_path: Path) -> None:
    """'' is null in every type (PROTOCOL.md, "Partition Value Serialization")."""
    ddl = "id BIGINT, s STRING, i INT, d DATE, t TIMESTAMP, b BOOLEAN"
    table = mica.Table.create(tmp_path / "t", ddl, partition_by=["s", "i", "d", "t", "b"])
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    empty = dict.fromkeys(["s", "i", "d", "t", "b"], "")
    change(tmp_path / "t", 1, lambda kind, action: action.update(partitionValues=empty) if kind == "add" else None)
    found = mica.Table.open(tmp_path / "t").scan(where="s IS NULL AND i IS NULL").to_arrow().to_pylist()
    assert found == [{"id": 1, **dict.fromkeys(empty)}]


@pytest.mark.parametrize("tags", ["-5", 5, [], {"mica.lateTypes": 2**31}, {"a": None, "b": {}}, False])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_tags_that_are_none_vouch_for_nothing_and_harm_nothing(tmp_path: Path, tags: Any, checkpoint: bool) -> None:
    interval = {"delta.checkpointInterval": "2"} if checkpoint else {}
    mica.Table.create(tmp_path / "t", "id BIGINT, s STRING", properties=interval).append(rows())
    change(tmp_path / "t", 1, lambda kind, action: action.update(tags=tags) if kind == "add" else None)
    mica.Table.open(tmp_path / "t").append(rows())
    table = mica.Table.open(tmp_path / "t")
    assert table.scan(where="id = 1").count() == 2
    assert mica.check(table).ok
    assert (tmp_path / "t" / "_delta_log" / f"{2:020}.checkpoint.parquet").exists() is checkpoint


@pytest.mark.parametrize("value", [False, True, 2**63 + 5, -1.5, "1", [], {}])
@pytest.mark.parametrize("name", ["readVersion", "inCommitTimestamp", "timestamp", "isBlindAppend", "operationMetrics"])
def test_a_history_shows_what_it_can(tmp_path: Path, name: str, value: Any) -> None:
    mica.Table.create(tmp_path / "t", "id BIGINT, s STRING").append(rows())
    change(tmp_path / "t", 1, lambda kind, action: action.update({name: value}) if kind == "commitInfo" else None)
    assert mica.Table.open(tmp_path / "t").history()["version"].to_pylist() == [1, 0]


@pytest.mark.parametrize("value", [False, True, 2**63 + 5, -1.5, "1", [], {}])
def test_a_time_that_is_none_is_not_a_commit_s_own(tmp_path: Path, value: Any) -> None:
    mica.Table.create(tmp_path / "t", "id BIGINT, s STRING", properties={"delta.enableInCommitTimestamps": "true"})
    mica.Table.open(tmp_path / "t").append(rows())
    change(
        tmp_path / "t", 1, lambda kind, action: action.update(inCommitTimestamp=value) if kind == "commitInfo" else None
    )
    table = mica.Table.open(tmp_path / "t")
    assert type(table.snapshot.timestamp) is int
    assert table.snapshot.timestamp > 10**12
    table.append(rows())
    assert mica.Table.open(tmp_path / "t").history()["version"].to_pylist() == [2, 1, 0]


def test_a_partition_column_that_the_schema_lacks_is_refused_by_reads_and_writes(tmp_path: Path) -> None:
    mica.Table.create(tmp_path / "t", "id BIGINT, s STRING").append(rows())
    change(
        tmp_path / "t", 0, lambda kind, action: action.update(partitionColumns=["q"]) if kind == "metaData" else None
    )
    table = mica.Table.open(tmp_path / "t")
    for use in (lambda: table.scan().to_arrow(), lambda: table.append(rows())):
        with pytest.raises(CorruptDataError, match="partitioned by 'q'"):
            use()


@pytest.mark.parametrize("call", [mica.Table.open, mica.read_parquet, mica.check, mica.Table.exists])
def test_a_path_with_a_nul_is_none(call: Callable[[str], Any]) -> None:
    with pytest.raises(UserError) as caught:
        call("a\0b")
    assert caught.value.code == "INVALID_ARGUMENT"


def test_a_limit_beyond_all_rows_is_no_limit(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, s STRING")
    table.append(rows())
    scan = table.scan(limit=10**30)
    assert (scan.count(), scan.to_arrow().num_rows) == (2, 2)
