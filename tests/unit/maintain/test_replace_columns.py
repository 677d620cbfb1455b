"""REPLACE COLUMNS orders and adds columns, and neither drops one nor changes a type."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica
from mica.errors import UserError
from mica.schema.ddl import to_ddl


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_columns_get_the_order_of_the_text(tmp_path: Path, mapping: str) -> None:
    ddl = "id INT COMMENT 'k', c CHAR(3), n INT NOT NULL, p STRING"
    table = mica.Table.create(tmp_path, ddl, ["p"], {"delta.columnMapping.mode": mapping})
    table.append([{"id": 1, "c": "ab", "n": 2, "p": "x"}])
    table.replace_columns("p STRING, N INT COMMENT 'm', z DOUBLE, c CHAR(3), id INT")
    table.replace_columns("p STRING, n INT, z DOUBLE, c STRING, id INT")  # c stays a CHAR(3), as in delta-spark
    assert str(table.schema) == str(mica.Table.open(tmp_path).schema)
    assert table.schema.names == ["p", "n", "z", "c", "id"]
    assert [field.metadata.get("comment") for field in table.schema.fields] == [None, "m", None, None, "k"]
    assert table.schema.field("n").nullable
    assert table.to_arrow().to_pylist() == [{"p": "x", "n": 2, "z": None, "c": "ab ", "id": 1}]
    assert table.history(1)["operation"].to_pylist() == ["REPLACE COLUMNS"]
    with pytest.raises(UserError):
        table.append([{"id": 1, "c": "abcd"}])
    assert mica.check(table).ok


@pytest.mark.parametrize(
    ("ddl", "code"),
    [
        ("id INT", "INVALID_ARGUMENT"),
        ("id BIGINT, s STRUCT<a: INT>", "INCOMPATIBLE_TYPE"),
        ("id INT, s STRUCT<a: INT, b: INT>", "INCOMPATIBLE_TYPE"),
        ("id INT, s STRUCT<a: INT>, s INT", "DUPLICATE_COLUMN"),
        ("id INT, s STRUCT<a: INT>, z INT NOT NULL", "MISSING_COLUMN"),
        ("id INT NOT NULL, s STRUCT<a: INT>", "INVALID_DDL"),
        ("id INT DEFAULT 5, s STRUCT<a: INT>", "INVALID_DDL"),
        ("id INT GENERATED ALWAYS AS (s.a), s STRUCT<a: INT>", "INVALID_DDL"),
    ],
)
def test_nothing_goes_and_no_type_changes(tmp_path: Path, ddl: str, code: str) -> None:
    table = mica.Table.create(tmp_path, "id INT, s STRUCT<a: INT>")
    with pytest.raises(UserError) as caught:
        table.replace_columns(ddl)
    assert (caught.value.code, table.refresh().version) == (code, 0)


def test_new_strings_have_the_tables_collation(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a STRING, b STRING COLLATE de", properties={"collation": "UTF8_LCASE"})
    table.replace_columns("n STRING, b STRING, a STRING")
    assert to_ddl(table.schema) == "n STRING COLLATE UTF8_LCASE,b STRING COLLATE de,a STRING"
