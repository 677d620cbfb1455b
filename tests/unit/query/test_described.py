"""Answers about a table; beside delta-spark in `tests/spark/test_sql_statements.py`."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("stored", "shown"), [(10**15, 10**18), (2**62, None), (-1, -1000), ('"x"', None)])
def test_a_time_of_no_year_of_pythons_is_described(tmp_path: Path, stored: object, shown: int | None) -> None:
    mica.Table.create(tmp_path, "id BIGINT")
    (commit,) = (tmp_path / "_delta_log").glob("*.json")
    commit.write_text(re.sub(r'"createdTime":\d+', f'"createdTime":{stored}', commit.read_text()))
    created = described.answer(mica.Table.open(tmp_path), "detail").column("createdAt")
    assert created.cast("int64").to_pylist() == [shown]


def test_one_column_is_described(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "`a b` CHAR(3) COMMENT 'x', s STRUCT<`n m`: INT>")

    def told(column: str) -> list[str]:
        return described.answer(table, "column", column).column("info_value").to_pylist()

    assert told("`A B`") == ["a b", "char(3)", "x"]
    assert told("s.`n m`") == ["s.`n m`", "int", "NULL"]
    with pytest.raises(mica.UserError, match="UNKNOWN_COLUMN"):
        told("nope")


def test_partitions_are_shown_in_order_with_their_types(tmp_path: Path) -> None:
    day = dt.date(2026, 1, 1)
    schema = "id INT, d DATE, `rows` STRING"
    table = mica.Table.create(tmp_path, schema, ["d", "rows"], {"delta.columnMapping.mode": "name"})
    assert described.answer(table, "partitions").to_pylist() == []
    for d, name in ((day, "b"), (None, "c"), (day, "a"), (day, "b")):
        table.append([{"id": 1, "d": d, "rows": name}])
    found = described.answer(table, "partitions")
    assert found.to_pylist() == [{"d": day, "rows": "a"}, {"d": day, "rows": "b"}, {"d": None, "rows": "c"}]
    for partition, places in (
        ({"d": "'2026-01-01'"}, [0, 1]),
        ({"D": "DATE'2026-01-01'", "rows": "'b'"}, [1]),
        ({"d": "NULL"}, [2]),
        ({"rows": "'d'"}, []),
    ):
        some = described.answer(table, "partitions", partition=partition)
        assert some.to_pylist() == [found.to_pylist()[place] for place in places]
    for wrong, code in (({"id": "1"}, "INVALID_PARTITION_COLUMN"), ({"d": "'soon'"}, "INVALID_CAST")):
        with pytest.raises(mica.UserError, match=code):
            described.answer(table, "partitions", partition=wrong)
    with pytest.raises(mica.UserError, match="has no partitions"):
        described.answer(mica.Table.create(tmp_path / "flat", "id INT"), "partitions")


def test_a_table_is_described_with_what_is_known_besides(tmp_path: Path) -> None:
    table = mica.Table.create(
        tmp_path, "id INT DEFAULT 7, s STRUCT<a: INT>", properties={"comment": "c"}, cluster_by=["s.a"]
    )
    rows = [tuple(row.values()) for row in described.answer(table, "extended").to_pylist()]
    start = rows.index(("# Detailed Table Information", "", ""))
    assert rows[start + 1 : start + 4] == [
        ("Comment", "c", ""),
        ("Location", str(tmp_path), ""),
        ("Provider", "delta", ""),
    ]
    name, text, _ = rows[start + 4]
    assert name == "Table Properties"
    assert text.startswith('[clusteringColumns=[["s","a"]],delta.feature.allowColumnDefaults=supported,')
    assert rows[start + 5 :] == [("", "", ""), ("# Column Default Values", "", ""), ("id", "int", "7")]


def test_a_history_has_the_names_of_delta_spark(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    found = described.history(table, 1)
    assert {"operationParameters", "userMetadata", "isBlindAppend"} <= set(found.column_names)


def test_the_details_name_fields_that_a_table_is_clustered_by(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, s STRUCT<a: INT>", cluster_by=["s.a", "id"])
    assert described.answer(table, "detail").to_pylist()[0]["clusteringColumns"] == ["s.a", "id"]


def test_keywords_among_clustering_columns_have_no_backticks(tmp_path: Path) -> None:
    """As delta-spark 4.4.0 shows and records them; other names that are no identifiers have them."""
    mapped = {"delta.columnMapping.mode": "name"}
    both = ["`select`", "`x,y`"]
    table = mica.Table.create(tmp_path, "`select` INT, `x,y` INT", properties=mapped, cluster_by=both)
    table.cluster_by(both[:1]).cluster_by(both)
    table.append([{"select": 1, "x,y": 1}])
    table.append([{"select": 2, "x,y": 2}])
    table.optimize()
    assert described.answer(table, "detail").to_pylist()[0]["clusteringColumns"] == ["select", "`x,y`"]
    done = {
        commit["operation"]: dict(commit["operationParameters"])
        for commit in described.history(table, None).to_pylist()[::-1]
    }
    assert done["CREATE TABLE"]["clusterBy"] == done["OPTIMIZE"]["clusterBy"] == '["select","`x,y`"]'
    assert done["CLUSTER BY"] == {"oldClusteringColumns": "select", "newClusteringColumns": "select,`x,y`"}


def test_a_partition_is_found_by_a_char_whose_blanks_the_log_lacks(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "char", "id INT, c CHAR(3)", ["c"])
    table.append([{"id": 1, "c": "k"}, {"id": 2, "c": "m"}])
    for text in ("'k'", "'k  '"):
        assert described.answer(table, "partitions", partition={"c": text}).num_rows == 1
