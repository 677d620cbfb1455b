"""Partition values, statistics and paths as other writers spell them: all readers of mica read what delta-spark reads.

Source: PROTOCOL.md, "Partition Value Serialization", "Per-file Statistics", "Add File and Remove File".
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from tests.oracle import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "America/New_York"

VALUES: dict[str, list[str | None]] = {
    "timestamp": [
        "1970-01-01 00:00:00", "2020-02-29 12:34:56.1", "2020-02-29 12:34:56.123456", "2020-02-29T12:34:56.123456Z",
        "2020-02-29T12:34:56Z", "2020-02-29T12:34:56", "2020-02-29 12:34:56+02:00", "2020-02-29", "0001-01-01 00:00:00",
        "9999-12-31 23:59:59.999999", "2021-03-14 02:30:00", None, "",
    ],
    "timestamp_ntz": ["1970-01-01 00:00:00", "2020-02-29 12:34:56.1", "2020-02-29T12:34:56.123456", None],
    "date": ["1970-01-01", "2020-2-9", "0001-01-01", "9999-12-31", "2020-02-29T00:00:00", "1582-10-10", None],
    "boolean": ["true", "false", "True", "FALSE", None],
    "integer": ["1", "-1", "+1", "01", None],
    "long": ["9223372036854775807", "-9223372036854775808"],
    "byte": ["127", "-128"],
    "short": ["32767"],
    "double": ["1", "1.5", "1e10", "1E-5", "NaN", "Infinity", "-Infinity", "-0.0", None],
    "float": ["1.1", "3.4028235e38", "NaN"],
    "decimal(10,2)": ["1", "1.5", "1.50", "-0.01", "1e2", "1.505", None],
    "string": ["a", " a ", "ü", "a/b=c%d", "null", "__HIVE_DEFAULT_PARTITION__", None],
    "binary": ["a", "\x01\x02\x03", "ü", None],
}  # fmt: skip

STATS: dict[str, tuple[pa.Array, list[dict[str, Any]]]] = {
    "timestamp": (
        pa.array([1_582_979_696_123_456], pa.timestamp("us", "UTC")),
        [
            {"min": "2020-02-29T12:34:56.123Z", "max": "2020-02-29T12:34:56.123Z"},
            {"min": "2020-02-29T07:34:56.123-05:00", "max": "2020-02-29T07:34:56.123-05:00"},
            {"min": "2020-02-29T12:34:56.123456Z", "max": "2020-02-29T12:34:56.123456Z"},
        ],
    ),
    "date": (pa.array([18_321], pa.date32()), [{"min": "2020-02-29", "max": "2020-02-29"}]),
    "string": (
        pa.array(["abcdef" * 10]),
        [
            {"min": "abc", "max": "abd"},
            {"min": "abcdef" * 10, "max": "abcdef" * 10},
            {"min": "abc", "max": "abc\ufffd"},
        ],
    ),
    "decimal(10,2)": (
        pa.array([150], pa.decimal128(10, 0)).cast(pa.decimal128(12, 2)).cast(pa.decimal128(10, 2)),
        [{"min": 150, "max": 150}, {"min": 150.0, "max": 150.00}, {"min": 1.5e2, "max": 1.5e2}],
    ),
    "double": (pa.array([1.5]), [{"min": 1.5, "max": 1.5}, {"min": "1.5", "max": "1.5"}, {"min": 1, "max": 2}]),
    "long": (pa.array([7], pa.int64()), [{"min": 7, "max": 7}, {"min": "7", "max": "7"}, {"min": 7.0, "max": 7.0}]),
    "boolean": (pa.array([True]), [{"min": True, "max": True}, {}]),
}


def table(path: Path, fields: dict[str, str], partition_by: list[str], files: list[dict[str, Any]]) -> None:
    """A table whose log says exactly this; each file has its `rows`."""
    (path / "_delta_log").mkdir(parents=True)
    later = ["timestampNtz"] if "timestamp_ntz" in fields.values() else []
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if later:
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": later, "writerFeatures": later}
    schema = {
        "type": "struct",
        "fields": [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in fields.items()],
    }
    metadata = {
        "id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(schema),
        "partitionColumns": partition_by, "configuration": {}, "createdTime": 0,
    }  # fmt: skip
    lines: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    for number, file in enumerate(files):
        name = file.get("file", f"f{number}.parquet")
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(file["rows"], path / name)
        add = {
            "path": name, "partitionValues": {}, "size": (path / name).stat().st_size, "modificationTime": 0,
            "dataChange": True,
        }  # fmt: skip
        lines.append({"add": add | {key: value for key, value in file.items() if key not in ("rows", "file")}})
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def test_partition_values(delta_session: SparkSession, tmp_path: Path) -> None:
    """'' is null in every type; delta-spark 4.4.0 agrees but for strings, which a test of mica holds."""
    spark, path = delta_session, tmp_path / "t"
    columns = {f"p{i}": type_ for i, type_ in enumerate(VALUES)}
    many = max(map(len, VALUES.values()))
    texts = [{name: VALUES[type_][i % len(VALUES[type_])] for name, type_ in columns.items()} for i in range(many)]
    files = [{"rows": ids(i), "partitionValues": own} for i, own in enumerate(texts)]
    table(path, {"id": "long", **columns}, list(columns), files)
    shown = {
        name: f"hex({name})" if type_ == "binary" else f"CAST({name} AS STRING)" for name, type_ in columns.items()
    }
    opened = mica.Table.open(path)
    with conf(spark, {"spark.sql.session.timeZone": ZONE}):
        theirs = spark.read.format("delta").load(str(path))
        expected = sorted(theirs.selectExpr("id", *shown.values()).collect())
        for ours in (opened.to_df(spark), opened.scan(limit=99).to_df(spark)):
            assert sorted(ours.selectExpr("id", *shown.values()).collect()) == expected
    del shown[next(name for name, type_ in columns.items() if type_ == "binary")]  # hex is Spark's alone
    inside = opened.scan(columns={"id": "id", **shown}, timezone=ZONE).to_arrow().sort_by("id")
    assert [tuple(row.values()) for row in inside.to_pylist()] == [tuple(row[: len(shown) + 1]) for row in expected]
    for name, type_ in columns.items():
        for id_, own in enumerate(texts):
            if own[name] and type_ not in ("binary", "string"):
                where = f"{name} = CAST('{own[name]}' AS {type_})"
                assert id_ in opened.scan(where, columns=["id"], timezone=ZONE).to_arrow()["id"].to_pylist(), where


@pytest.mark.parametrize(
    ("type_", "text"),
    [("integer", "2147483648"), ("integer", "one"), ("byte", "128"), ("decimal(10,2)", "123456789.00"), ("date", "x")],
)
def test_values_that_the_type_does_not_have(tmp_path: Path, type_: str, text: str) -> None:
    table(tmp_path / "t", {"id": "long", "p": type_}, ["p"], [{"rows": ids(0), "partitionValues": {"p": text}}])
    for read in (lambda scan: scan.to_arrow(), lambda scan: scan.head(1)):
        with pytest.raises(mica.CorruptDataError) as caught:
            read(mica.Table.open(tmp_path / "t").scan())
        assert caught.value.code == "INVALID_PARTITION_VALUE"
        assert text in caught.value.message


def test_statistics(delta_session: SparkSession, tmp_path: Path) -> None:
    """No spelling of a bound hides the row that it bounds."""
    columns = {f"c{i}": type_ for i, type_ in enumerate(STATS)}
    rows = pa.table({name: STATS[type_][0] for name, type_ in columns.items()})
    files: list[dict[str, Any]] = [{"rows": rows}]
    for i in range(3):
        own = {name: STATS[type_][1][i % len(STATS[type_][1])] for name, type_ in columns.items()}
        sides = {
            f"{side}Values": {name: one[side] for name, one in own.items() if side in one} for side in ("min", "max")
        }
        counts = {"numRecords": 1, "tightBounds": i % 2 == 0, "nullCount": dict.fromkeys(columns, 0)}
        files.append({"rows": rows, "stats": json.dumps(counts | sides)})
    table(tmp_path / "t", columns, [], files)
    spark, opened = delta_session, mica.Table.open(tmp_path / "t")
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        found = spark.read.format("delta").load(str(tmp_path / "t"))
        texts = found.selectExpr(*[f"CAST({name} AS STRING)" for name in columns]).first()
        every = []
        for (name, type_), text in zip(columns.items(), texts, strict=True):
            for where in (f"{name} = CAST('{text}' AS {type_})", f"{name} >= CAST('{text}' AS {type_})"):
                assert opened.scan(where).count() == len(files), where
                every.append(where)
        assert opened.scan(" AND ".join(every)).to_df(spark).count() == len(files)
        assert found.where(" AND ".join(every)).count() == len(files)


def test_paths(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t é%41"
    away = tmp_path / "away"
    away.mkdir()
    pq.write_table(ids(9), away / "a b.parquet")
    files = [
        {"rows": ids(0), "file": "plain.parquet"},
        {"rows": ids(1), "file": "a b.parquet", "path": "a%20b.parquet"},
        {"rows": ids(2), "file": "p=x%3Ay/c.parquet", "path": "p=x%253Ay/c.parquet"},
        {"rows": ids(3), "file": "ü.parquet", "path": "%C3%BC.parquet"},
        {"rows": ids(4), "file": "100%.parquet", "path": "100%25.parquet"},
        {"rows": ids(5), "file": "e.parquet", "path": (path / "e.parquet").as_uri()},
        {"rows": ids(6), "file": "f.parquet", "path": (away / "a b.parquet").as_uri()},
    ]
    size = (away / "a b.parquet").stat().st_size
    files[-1]["size"] = size
    table(path, {"id": "long"}, [], files)
    expected = [0, 1, 2, 3, 4, 5, 9]
    assert sorted(r[0] for r in spark.read.format("delta").load(str(path)).collect()) == expected
    opened = mica.Table.open(path)
    assert sorted(opened.to_arrow()["id"].to_pylist()) == expected
    assert sorted(r[0] for r in opened.to_df(spark).collect()) == expected
    assert sorted(r[0] for r in opened.scan("id >= 0").to_df(spark).collect()) == expected
