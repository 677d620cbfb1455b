"""What a table and a scan say of themselves, and whom they hand their rows to."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.checking.inspect import inspect_file
from mica.schema.ddl import parse_ddl
from mica.schema.types import STRING, StructField, StructType


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    made = mica.Table.create(tmp_path / "t", "d DATE, n DECIMAL(5,1), id BIGINT, v VARIANT", ["d", "n"])
    for day, number, ids in ((2, "1.5", [1, 2]), (1, "1.5", [3]), (1, None, [4]), (2, "1.5", [5])):
        rows = {
            "d": pa.array([dt.date(2020, 1, day)] * len(ids)),
            "n": pa.array([number and Decimal(number)] * len(ids), pa.decimal128(5, 1)),
            "id": ids,
            "v": mica.variant.from_json([f'{{"id":{i}}}' for i in ids]),
        }
        made.append(pa.table(rows))
    return made


def test_a_table_exists_where_its_log_has_a_version(tmp_path: Path, table: mica.Table) -> None:
    assert mica.Table.exists(table.path)
    assert not mica.Table.exists(tmp_path)
    assert not mica.Table.exists(tmp_path / "nowhere")
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    assert not mica.Table.exists(tmp_path / "empty")
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text("{")
    assert mica.Table.exists(tmp_path / "t"), "it cannot be opened, and no other may be made in its place"


def test_a_table_counts_and_shows_its_rows(table: mica.Table) -> None:
    assert table.count() == 5
    assert table.to_arrow().equals(table.scan().to_arrow())
    assert sorted(table.to_pandas()["id"]) == [1, 2, 3, 4, 5]
    assert (table.protocol, table.metadata) == (table.snapshot.protocol, table.snapshot.metadata)
    assert "variantType" in table.protocol.reader_features
    assert table.metadata.partition_columns == ("d", "n")


def test_partitions_are_typed_and_counted(table: mica.Table) -> None:
    found = table.partitions()
    assert found.schema.field("d").type == pa.date32()
    assert found.schema.field("n").type == pa.decimal128(5, 1)
    assert found.drop_columns(["bytes"]).to_pylist() == [
        {"d": dt.date(2020, 1, 1), "n": Decimal("1.5"), "files": 1, "rows": 1},
        {"d": dt.date(2020, 1, 1), "n": None, "files": 1, "rows": 1},
        {"d": dt.date(2020, 1, 2), "n": Decimal("1.5"), "files": 2, "rows": 3},
    ]
    assert sum(found["bytes"].to_pylist()) == sum(table.files()["size"].to_pylist())


def test_partitions_of_odd_tables(tmp_path: Path) -> None:
    plain = mica.Table.create(tmp_path / "plain", "a INT")
    assert plain.partitions().num_rows == 0
    plain.append(pa.table({"a": [1, 2]}))
    assert plain.partitions().drop_columns(["bytes"]).to_pylist() == [{"files": 1, "rows": 2}]
    odd = mica.Table.create(tmp_path / "odd", "rows STRING, a INT", ["rows"])
    assert odd.partitions().column_names == ["rows", "files", "bytes", "rows"]
    odd.append(pa.table({"rows": ["x", "y", ""], "a": [1, 2, 3]}))
    assert odd.partitions().column(0).to_pylist() == ["x", "y", None]


def test_rows_of_a_partition_are_unknown_where_one_file_does_not_say(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "p INT, a INT", ["p"])
    table.append(pa.table({"p": [1, 2], "a": [1, 2]}))
    table.append(pa.table({"p": [1], "a": [3]}))
    log = tmp_path / "t" / "_delta_log" / f"{2:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    log.write_text("\n".join(map(json.dumps, actions)))
    assert mica.Table.open(table.path).partitions().select(["p", "files", "rows"]).to_pylist() == [
        {"p": 1, "files": 2, "rows": None},
        {"p": 2, "files": 1, "rows": 1},
    ]


def test_the_head_of_a_scan_is_its_first_rows(table: mica.Table) -> None:
    scan = table.scan(columns=["id"], limit=3)
    assert scan.head(2).equals(scan.to_arrow().slice(0, 2))
    assert scan.head().equals(scan.to_arrow()), "no more than its limit"
    assert scan.head(0).num_rows == 0
    with pytest.raises(mica.UserError) as caught:
        scan.head(-1)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_a_scan_is_a_stream_of_batches(table: mica.Table) -> None:
    scan = table.scan(where="id > 1")
    assert pa.table(scan).equals(scan.to_arrow())
    assert pa.table(scan).equals(scan.to_arrow()), "each stream reads anew"
    reader = pa.RecordBatchReader.from_stream(scan)
    assert reader.schema.equals(scan.to_arrow().schema, check_metadata=True)
    assert sum(batch.num_rows for batch in reader) == 4
    reader.close()
    assert table.scan().to_reader().read_all().num_rows == 5


def test_a_stream_opens_no_more_files_than_are_taken(table: mica.Table) -> None:
    files = table.files()["path"].to_pylist()
    for name in files[1:]:
        (Path(table.path) / name).unlink()
    reader = pa.RecordBatchReader.from_stream(mica.Table.open(table.path).scan(columns=["id"], limit=1))
    assert reader.read_next_batch().num_rows == 1
    with pytest.raises(mica.MicaError):
        mica.Table.open(table.path).scan(columns=["id"]).to_reader().read_all()
    with pytest.raises(Exception, match=r"parquet"):
        pa.table(mica.Table.open(table.path).scan(columns=["id"]))


def test_polars_reads_a_scan(table: mica.Table) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(table.scan(columns=["d", "n", "id"]))
    assert sorted(frame["id"].to_list()) == [1, 2, 3, 4, 5]
    assert frame.schema["d"] == polars.Date
    assert polars.DataFrame(table.scan()).shape == (5, 4), "Variants come along"


def test_duckdb_reads_a_scan(table: mica.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    scan = table.scan(where="id > 1")  # noqa: F841 - DuckDB finds it by its name
    assert duckdb.sql("SELECT sum(id), sum(v.id::INT) FROM scan").fetchall() == [(14, 14)]
    assert duckdb.sql("SELECT count(*) FROM scan WHERE id = 3").fetchall() == [(1,)]


def test_a_schema_as_text_is_ddl() -> None:
    text = "a INT NOT NULL,`b c` STRUCT<d: STRING COLLATE de>,v VARIANT,m MAP<STRING, ARRAY<DECIMAL(5,2)>>"
    schema = parse_ddl(text)
    assert str(schema) == text
    assert parse_ddl(f"{schema}") == schema
    assert repr(schema).startswith("StructType(")
    strange = StructType((StructField("a", STRING, True, {"__COLLATIONS": {"a": "icu..1"}}),))
    assert str(strange) == repr(strange), "what has no spelling in DDL is shown all the same"


def test_one_vocabulary_of_modes(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a":1}\n')
    path = tmp_path / "t"
    assert mica.ingest_json(tmp_path / "a.ndjson", path, mode="ignore").rows == 1
    report = mica.ingest_json(tmp_path / "nothing.ndjson", path, mode="ignore")
    assert (report.version, report.rows, report.input_files) == (0, 0, 0)
    assert "nothing was read" in report.notes[0]
    assert mica.Table.create(path, "x INT", mode="ignore").count() == 1
    for call in (
        lambda: mica.Table.create(path, "x INT"),
        lambda: mica.Table.create(path, "x INT", mode="error"),
        lambda: mica.ingest_json(tmp_path / "a.ndjson", path, mode="error"),
    ):
        with pytest.raises(mica.UserError) as caught:
            call()
        assert caught.value.code == "TABLE_EXISTS"
    assert mica.Table.create(path, "x INT", mode="overwrite").count() == 0
    for call in (
        lambda: mica.Table.create(path, "x INT", mode="append"),
        lambda: mica.ingest_json(tmp_path / "a.ndjson", path, mode="upsert"),  # type: ignore[arg-type]
    ):
        with pytest.raises(mica.UserError, match="'ignore'"):
            call()


def test_the_old_name_of_the_mode_stays_for_a_version(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="use mode") as caught:
        mica.Table.create(tmp_path / "t", "a INT", if_exists="error")
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="use mode"):
        assert mica.Table.create(tmp_path / "t", "b INT", if_exists="ignore").schema.names == ["a"]


@pytest.mark.parametrize("mode", ["error", "ignore", "overwrite"])
def test_only_an_append_joins_a_table_that_was_made_meanwhile(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.ndjson").write_text('{"a":1}\n')
    from mica.write.target import Target

    commit = Target.commit

    def late(self: Target, *given: object) -> object:
        monkeypatch.undo()
        mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "t")
        return commit(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Target, "commit", late)
    with pytest.raises(mica.ConflictError) as caught:
        mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "t", mode=mode)  # type: ignore[arg-type]
    assert caught.value.code == "TABLE_EXISTS"
    assert mica.Table.open(tmp_path / "t").count() == 1
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1


SCHEMA = "struct<a: bigint>"


@pytest.mark.parametrize("given", [SCHEMA, {"v": SCHEMA}, {"V": SCHEMA}, mica.variant.ShreddingSchema.of(SCHEMA),
                                   pa.struct([("a", pa.int64())]), {"v": {"a": "bigint"}}])  # fmt: skip
def test_one_form_of_shredding(tmp_path: Path, given: object) -> None:
    (tmp_path / "a.ndjson").write_text('{"a":1,"b":2}\n')
    rows = pa.table({"v": mica.variant.from_json(['{"a":1,"b":2}'])})
    mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "i", shredding=given)
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append(rows, shredding=given)
    table.overwrite(rows, shredding=given)
    mica.write_parquet(rows, tmp_path / "f" / "a.parquet", shredding=given)
    files = [*(tmp_path / "i").glob("*.parquet"), *(tmp_path / "t").glob("*.parquet"), tmp_path / "f" / "a.parquet"]
    assert len(files) == 4
    for file in files:
        assert [row["path"] for row in inspect_file(str(file))] == ["$", "$['a']"]


def test_no_schema_leaves_a_column_unshredded(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a":1}\n')
    mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "t", shredding={"v": None})
    mica.Table.open(tmp_path / "t").append(pa.table({"v": mica.variant.from_json(['{"a":1}'])}), shredding={"v": None})
    for file in (tmp_path / "t").glob("*.parquet"):
        assert [row["path"] for row in inspect_file(str(file))] == ["$"]


def test_a_schema_that_could_be_of_two_columns_is_refused(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT, s STRUCT<w: VARIANT>, l ARRAY<VARIANT>")
    with pytest.raises(mica.UserError, match=r"here: v, s\.w"):
        table.append([{"v": 1}], shredding=SCHEMA)
    with pytest.raises(mica.UserError, match=r"'a'"):
        table.append([{"v": 1}], shredding={"a": "bigint"})
    assert table.append([{"v": {"a": 1}, "s": {"w": {"a": 1}}}], shredding={"v": SCHEMA, "s.w": SCHEMA}).rows == 1
    (tmp_path / "a.ndjson").write_text('{"a":1,"b":2}\n')
    with pytest.warns(DeprecationWarning, match="by column") as caught:
        mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "i", shredding={"a": "bigint"})
    assert caught[0].filename == __file__
    table = mica.Table.create(tmp_path / "u", "v VARIANT", properties={"delta.enableVariantShredding": "false"})
    with pytest.warns(UserWarning, match="are written unshredded") as caught:
        table.append([{"v": 1}], shredding={"v": SCHEMA})
    assert caught[0].filename == __file__
