"""Tables made with their first rows, and replaced by others, in one commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import types

import mica
from mica.errors import ConflictError, UserError
from mica.maintain.create import base_of, create
from mica.storage import Storage

ROWS = [{"id": i, "v": {"k": i}} for i in range(5)]


def operations(table: mica.Table) -> list[str]:
    return [row["operation"] for row in table.history().to_pylist()]


def test_a_table_comes_with_its_rows_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        mica.Table.create(tmp_path / "t", "id INT NOT NULL", data=[{"id": None}])
    assert raised.value.code == "NULL_IN_NOT_NULL_COLUMN"
    assert not mica.Table.exists(tmp_path / "t")
    assert not list(tmp_path.rglob("*.parquet"))
    table = mica.Table.create(tmp_path / "t", "id INT, v VARIANT", ["id"], data=ROWS)
    assert (table.version, table.count(), table.partition_by) == (0, 5, ("id",))
    assert table.scan("v:k::int = 3").count() == 1
    assert operations(table) == ["CREATE TABLE AS SELECT"]
    assert dict(table.history().to_pylist()[0]["operation_metrics"])["numOutputRows"] == "5"
    assert mica.check(table).ok


def test_a_table_is_replaced_with_its_rows_or_stays(tmp_path: Path) -> None:
    mica.Table.create(tmp_path, "id INT, v VARIANT", data=ROWS, properties={"delta.enableChangeDataFeed": "true"})
    with pytest.raises(UserError):
        mica.Table.create(tmp_path, "n INT NOT NULL", mode="overwrite", data=[{"n": None}])
    assert mica.Table.open(tmp_path).count() == 5
    kept = mica.Table.create(tmp_path, "other STRING", mode="ignore", data=[{"other": "x"}])
    assert (kept.version, kept.schema.names) == (0, ["id", "v"])
    table = mica.Table.create(tmp_path, "n BIGINT, p STRING", ["p"], mode="overwrite", data=[{"n": 7, "p": "a"}])
    assert (table.version, table.to_arrow().to_pylist(), table.partition_by) == (1, [{"n": 7, "p": "a"}], ("p",))
    assert operations(table) == ["CREATE OR REPLACE TABLE AS SELECT", "CREATE TABLE AS SELECT"]
    assert mica.Table.open(tmp_path, version=0).count() == 5
    again = mica.Table.create(tmp_path, table.schema, ["p"], mode="overwrite", data=table)
    assert again.to_arrow().to_pylist() == [{"n": 7, "p": "a"}]
    assert mica.check(table).ok


def test_the_comment_is_the_description(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"comment": "events", "k": "v"})
    assert (table.metadata.description, dict(table.properties)) == ("events", {"k": "v"})
    assert table.set_properties({"comment": "others"}).metadata.description == "others"
    assert table.set_properties({"k": None}).metadata.description == "others"
    table = mica.Table.create(tmp_path, "n INT", mode="overwrite", properties={"comment": "numbers"})
    assert mica.Table.open(tmp_path).metadata.description == "numbers"
    assert table.set_properties({"comment": None}).metadata.description is None
    assert operations(table)[:3] == ["UNSET TBLPROPERTIES", "CREATE OR REPLACE TABLE", "UNSET TBLPROPERTIES"]


def test_what_speaks_of_columns_that_are_gone_goes_with_them(tmp_path: Path) -> None:
    of_v = {"mica.variantStats.paths": "v:k", "mica.bloomFilter.paths": "v:k", "mica.shredding": "v:k: bigint"}
    others = {"owner": "me", "delta.dataSkippingStatsColumns": "id", "delta.constraints.new": "id > 0"}
    table = mica.Table.create(tmp_path, "id INT, v VARIANT", properties={**of_v, **dict([*others.items()][:2])})
    table.add_constraint("old", "v:k::int < 9")
    table.add_constraint("new", "id > 0")
    table = mica.Table.create(tmp_path, "id BIGINT", mode="overwrite")
    assert {name: text for name, text in table.properties.items() if "enable" not in name} == others
    with pytest.raises(UserError) as raised:
        table.append([{"id": 0}])
    assert raised.value.code == "CONSTRAINT_VIOLATED"
    table.append([{"id": 1}])
    with pytest.raises(UserError) as raised:
        mica.Table.create(tmp_path, "id BIGINT", mode="overwrite", properties=of_v)
    assert raised.value.code == "UNKNOWN_COLUMN"


def test_another_writer_may_be_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mica.maintain import create

    own = create.write_rows

    def late(*args: object, **named: object) -> object:
        mica.Table.create(tmp_path, "id INT, v VARIANT", data=ROWS[:1])
        return own(*args, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(create, "write_rows", lambda *args: (patched.undo(), late(*args))[1])
        with pytest.raises(mica.MicaError) as raised:
            mica.Table.create(tmp_path, "id INT, v VARIANT", data=ROWS)
    assert raised.value.code == "TABLE_EXISTS"
    assert mica.Table.open(tmp_path).count() == 1


@pytest.mark.parametrize("exists", [True, False])
def test_rows_that_came_since_the_base_stay(tmp_path: Path, exists: bool) -> None:
    if exists:
        mica.Table.create(tmp_path, "id INT", data=[{"id": 1}])
    base = base_of(Storage.open(tmp_path))
    if not exists:
        mica.Table.create(tmp_path, "id INT")
    mica.Table.open(tmp_path).append([{"id": 2}])
    with pytest.raises(ConflictError) as raised:
        create(base, "id INT", (), {}, "overwrite", [{"id": 1}])
    assert raised.value.code == ("CONCURRENT_APPEND" if exists else "TABLE_EXISTS")
    assert mica.Table.open(tmp_path).version == 1


def test_a_schema_of_spark_needs_no_session(tmp_path: Path) -> None:
    fields = [
        types.StructField("a", types.IntegerType(), False, {"comment": "c"}),
        types.StructField("v", types.VariantType()),
        types.StructField("s", types.StringType("UTF8_LCASE")),
        types.StructField("c", types.CharType(3)),
        types.StructField("x", types.StructType([types.StructField("y", types.ArrayType(types.LongType()))])),
    ]
    table = mica.Table.create(tmp_path / "a", types.StructType(fields))
    wanted = "a INT NOT NULL COMMENT 'c', v VARIANT, s STRING COLLATE UTF8_LCASE, c CHAR(3), x STRUCT<y: ARRAY<BIGINT>>"
    assert table.schema == mica.Table.create(tmp_path / "b", wanted).schema


@pytest.mark.parametrize("schema", [5, [], {}, None, object()])
def test_what_is_no_schema_is_refused(tmp_path: Path, schema: object) -> None:
    with pytest.raises(UserError) as caught:
        mica.Table.create(tmp_path, schema)
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("type_", "wanted"),
    [(types.CharType(3), "CHAR(3)"), (types.VarcharType(2), "VARCHAR(2)"), (types.StringType(), "STRING")],
)
def test_lengths_of_sparks_strings_are_metadata_in_the_log(tmp_path: Path, type_: types.DataType, wanted: str) -> None:
    """The log had a type `char(3)`, which no engine knows, and nobody could write to the table."""
    schema = types.StructType([types.StructField("a", type_), types.StructField("b", types.ArrayType(type_))])
    table = mica.Table.create(tmp_path / "a", schema)
    assert table.metadata.schema_string == (
        mica.Table.create(tmp_path / "b", f"a {wanted}, b ARRAY<{wanted}>").metadata.schema_string
    )
    table.append([{"a": "x", "b": ["y"]}])
    assert table.scan("a = 'x'").count() == 1


@pytest.mark.parametrize("type_", [types.CalendarIntervalType(), types.DayTimeIntervalType(), types.NullType()])
@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_types_that_spark_alone_has_are_refused(tmp_path: Path, type_: types.DataType, mode: str) -> None:
    mica.Table.create(tmp_path / "overwrite", "a INT")
    for inner in (type_, types.ArrayType(type_)):
        with pytest.raises(UserError) as caught:
            mica.Table.create(tmp_path / mode, types.StructType([types.StructField("c", inner)]), mode=mode)
        assert caught.value.code == "UNSUPPORTED_TYPE"
    assert mica.Table.open(tmp_path / "overwrite").version == 0


def test_who_takes_any_table_takes_the_one_that_another_writer_makes_first(tmp_path: Path) -> None:
    base = base_of(Storage.open(tmp_path))
    mica.Table.create(tmp_path, "id INT", data=[{"id": 1}])
    found = create(base, "id INT, other INT", [], None, "ignore", [{"id": 2}])
    assert mica.Table(found).to_arrow().to_pylist() == [{"id": 1}]
    with pytest.raises(ConflictError):
        create(base, "id INT", [], None, "error")


def test_the_history_says_what_was_created(tmp_path: Path) -> None:
    """As delta-spark's: tools read from it how a table was made."""
    table = mica.Table.create(tmp_path / "t", "id INT, p INT", ["p"], {"x": "y", "comment": "of all"})
    table = mica.Table.create(table.path, "id INT", mode="overwrite", data=[{"id": 1}])
    shown = [dict(row) for row in table.history()["operation_parameters"].to_pylist()]
    assert shown[1] == {
        "partitionBy": '["p"]', "clusterBy": "[]", "description": "of all", "isManaged": "false",
        "properties": '{"x":"y"}',
    }  # fmt: skip
    assert (shown[0]["partitionBy"], shown[0]["properties"]) == ("[]", '{"x":"y"}')
    plain = mica.Table.create(tmp_path / "plain", "id INT")
    assert dict(plain.history()["operation_parameters"].to_pylist()[0])["description"] is None
