"""Columns and collations of a table that exists."""

from pathlib import Path

import pyarrow as pa
import pytest

from mica.errors import ConflictError, CorruptDataError, UserError
from mica.schema.ddl import to_ddl
from mica.table import Table


def test_columns_are_added_with_their_collations(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "a STRING")
    table.append(pa.table({"a": ["x"]}))
    table.add_columns("b STRING COLLATE de, c STRUCT<d: STRING COLLATE sv>")
    assert to_ddl(Table.open(tmp_path / "t").schema) == "a STRING,b STRING COLLATE de,c STRUCT<d: STRING COLLATE sv>"
    assert table.scan().to_arrow().column("b").to_pylist() == [None]
    assert "collations" in table.snapshot.protocol.writer_features
    for columns, code in (("A INT", "DUPLICATE_COLUMN"), ("z INT NOT NULL", "MISSING_COLUMN"), ("z", "INVALID_DDL")):
        with pytest.raises(UserError) as raised:
            table.add_columns(columns)
        assert raised.value.code == code
    assert table.version == 2


def test_a_collation_is_changed_and_taken_away(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "a STRING, `b.c` ARRAY<STRING>, p STRING", partition_by=["p"])
    table.set_collation("A", "unicode_ci").set_collation("`b.c`.element", "icu.de")
    assert to_ddl(table.schema) == "a STRING COLLATE UNICODE_CI,`b.c` ARRAY<STRING COLLATE de>,p STRING"
    table.set_collation("a", None)
    assert to_ddl(table.schema).startswith("a STRING,")
    for column, collation, code in (
        ("a", "klingon", "UNKNOWN_COLLATION"), ("a", "oracle.de", "UNKNOWN_COLLATION"),
        ("a", "icu..1", "INVALID_COLLATION"), ("zz", "de", "UNKNOWN_COLUMN"),
        ("p", "de", "INVALID_PARTITION_COLUMN"),
    ):  # fmt: skip
        with pytest.raises(UserError) as raised:
            table.set_collation(column, collation)
        assert raised.value.code == code
    assert [row["operation"] for row in table.history().to_pylist()] == ["CHANGE COLUMN"] * 3 + ["CREATE TABLE"]


def test_a_change_of_collation_does_not_slip_past_another_change(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "a STRING")
    other = Table.open(tmp_path / "t").set_collation("a", "de")
    with pytest.raises(ConflictError):
        table.set_collation("a", "sv")
    assert other.refresh().schema.field("a").metadata["__COLLATIONS"] == {"a": "icu.de"}


def test_a_schema_whose_collations_mean_nothing_is_not_written_to(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "a STRING COLLATE de")
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('\\"a\\":\\"icu.de\\"', '\\"b\\":\\"icu.de\\"'))
    table = Table.open(tmp_path / "t")
    with pytest.raises(CorruptDataError, match="is not a string of this column") as raised:
        table.append(pa.table({"a": ["x"]}))
    assert raised.value.code == "INVALID_COLLATION"
    assert str(tmp_path) in str(raised.value)
    assert [f.name for f in (tmp_path / "t").iterdir()] == ["_delta_log"]


def test_a_collated_partition_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        Table.create(tmp_path / "t", "a STRING COLLATE de, b INT", partition_by=["a"])
    assert raised.value.code == "INVALID_PARTITION_COLUMN"


def test_a_column_is_renamed_where_no_file_knows_it(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "p INT, s STRING COLLATE UTF8_LCASE", ["p"])
    table.rename_column("s", "t")
    assert to_ddl(table.schema) == "p INT,t STRING COLLATE UTF8_LCASE"
    table.append(pa.table({"p": pa.array([1], pa.int32()), "t": ["a"]}))
    assert table.scan("t = 'A'").count() == 1
    for column, code in (("t", "NEEDS_COLUMN_MAPPING"), ("p", "INVALID_PARTITION_COLUMN"), ("s", "UNKNOWN_COLUMN")):
        with pytest.raises(UserError) as raised:
            table.rename_column(column, "u")
        assert raised.value.code == code
    assert Table.open(tmp_path / "t").version == 2


def test_a_table_of_the_preview_is_read_appended_to_and_keeps_its_name(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "a STRING COLLATE UTF8_LCASE")
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('"collations"', '"collations-preview"'))
    table = Table.open(tmp_path / "t")
    assert "collations-preview" in table.snapshot.protocol.writer_features
    table.append(pa.table({"a": ["B", "a"]}))
    table.add_columns("b STRING COLLATE de")
    found = Table.open(tmp_path / "t")
    assert "collations" not in found.snapshot.protocol.writer_features
    assert found.scan("a = 'b'").to_arrow().column("a").to_pylist() == ["B"]
    assert "statsWithCollation" in found.files().column("stats")[0].as_py()
