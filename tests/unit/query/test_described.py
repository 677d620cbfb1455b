"""Answers about a table; beside delta-spark in `tests/spark/test_sql_statements.py`."""

from __future__ import annotations

from pathlib import Path

import mica
from mica.query import described


def test_a_table_is_described(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT, d DATE, v VARIANT", ["d"], {"delta.appendOnly": "true"})
    table.append([{"id": 1, "d": None, "v": {"a": 1}}])
    (detail,) = described.answer(table, "detail").to_pylist()
    assert (detail["format"], detail["location"], detail["numFiles"]) == ("delta", str(tmp_path), 1)
    assert detail["partitionColumns"] == ["d"]
    assert detail["sizeInBytes"] == sum(file.stat().st_size for file in tmp_path.rglob("*.parquet"))
    assert detail["createdAt"] <= detail["lastModified"]
    assert {"variantType", "variantShredding", "appendOnly"} <= set(detail["tableFeatures"])
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (3, 7)
    properties = {row["key"]: row["value"] for row in described.answer(table, "properties").to_pylist()}
    assert properties["delta.appendOnly"] == "true"
    assert properties["delta.feature.variantType"] == "supported"
    assert properties["delta.minReaderVersion"] == "3"
    assert described.answer(table, "properties", "delta.appendOnly").to_pylist() == [
        {"key": "delta.appendOnly", "value": "true"}
    ]
    assert "does not have property: x" in described.answer(table, "properties", "x").column("value")[0].as_py()
    assert described.answer(table, "names").column("col_name").to_pylist() == ["id", "d", "v"]
    types = [(row["col_name"], row["data_type"]) for row in described.answer(table, "columns").to_pylist()]
    assert types[:3] == [("id", "bigint"), ("d", "date"), ("v", "variant")]
    assert types[-1] == ("d", "date")


def test_a_history_has_the_names_of_delta_spark(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    found = described.history(table, 1)
    assert {"operationParameters", "userMetadata", "isBlindAppend"} <= set(found.column_names)


def test_the_details_name_fields_that_a_table_is_clustered_by(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, s STRUCT<a: INT>", cluster_by=["s.a", "id"])
    assert described.answer(table, "detail").to_pylist()[0]["clusteringColumns"] == ["s.a", "id"]
