"""Partition values, statistics and paths as other writers may spell them: mica in process, mica on Spark (its tasks and
Spark's own reader) and delta-spark find the same rows.

Source: PROTOCOL.md, "Partition Value Serialization", "Per-file Statistics", "Add File and Remove File".
"""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest

import mica
from tests.oracle import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Type of the partition column → (first spelling, others of the same value, a predicate that holds).
PARTITIONS: dict[str, tuple[str, list[str], str]] = {
    "TIMESTAMP": (
        "2020-01-01 10:00:00",
        ["2020-01-01 10:00:00.0", "2020-01-01 10:00:00.000000", "2020-01-01T10:00:00Z", "2020-01-01T10:00:00.000000Z",
         "2020-01-01T10:00:00", "2020-01-01 10:00"],
        "p = TIMESTAMP'2020-01-01 10:00:00Z'",
    ),
    "TIMESTAMP_NTZ": (
        "2020-01-01 10:00:00", ["2020-01-01 10:00:00.000", "2020-01-01T10:00:00", "2020-01-01T10:00:00.000000"],
        "p < TIMESTAMP_NTZ'2020-01-01 10:00:01'",
    ),
    "BOOLEAN": ("true", ["True", "TRUE"], "p"),
    "DOUBLE": ("1.5", ["1.50", "15E-1", "1.5e0"], "p = 1.5D"),
    "DECIMAL(6,2)": ("1.50", ["1.5", "01.5", "1.500"], "p = 1.5"),
    "INT": ("7", ["07", "+7"], "p = 7"),
    "DATE": ("2020-01-02", ["2020-1-2"], "p = DATE'2020-01-02'"),
    "STRING": ("a b", [], "p = 'a b'"),
}  # fmt: skip


def rewritten(path: Path, change: Callable[[dict[str, Any]], None], version: int = 1) -> None:
    """Changes the files that a version adds."""
    log = path / "_delta_log" / f"{version:020}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if "add" in line:
            change(line["add"])
    log.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))


def readers(spark: SparkSession, path: Path, where: str) -> list[list[tuple[Any, ...]]]:
    scan = mica.Table.open(path).scan(where)
    frame = spark.read.format("delta").load(str(path)).where(where)
    found = [scan.to_arrow().to_pylist(), [r.asDict() for r in scan.to_df(spark).collect()]]
    return [sorted((row["id"],) for row in rows) for rows in (*found, [r.asDict() for r in frame.collect()])]


@pytest.mark.slow
def test_partition_values(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, names = delta_session, {type_: f"p{number}" for number, type_ in enumerate(PARTITIONS)}
    columns = ", ".join(f"{name} {type_}" for type_, name in names.items())
    wheres = [where.replace("p", names[type_], 1) for type_, (_, _, where) in PARTITIONS.items()]
    count = max(1 + len(others) for _, others, _ in PARTITIONS.values())
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        table = mica.Table.create(tmp_path, f"id INT, {columns}", list(names.values()))
        values = ", ".join(f"CAST('{first}' AS {type_}) AS {names[type_]}" for type_, (first, *_) in PARTITIONS.items())
        row = spark.sql(f"SELECT 0 AS id, {values}").toArrow()
        for number in range(count):
            table.append(row.set_column(0, "id", pa.array([number], pa.int32())))
        for number in range(count):
            texts = {names[type_]: [first, *others][number % (1 + len(others))]
                     for type_, (first, others, _) in PARTITIONS.items()}  # fmt: skip
            rewritten(tmp_path, lambda add, texts=texts: add["partitionValues"].update(texts), number + 1)
        ids = [(number,) for number in range(count)]
        assert readers(spark, tmp_path, " AND ".join(wheres)) == [ids] * 3
        for where in wheres:
            assert mica.Table.open(tmp_path).scan(where).count() == count, where
            assert mica.Table.open(tmp_path).scan(f"NOT ({where})").count() == 0, where
        # "an empty string for any type translates to null": delta-spark cannot cast it, and keeps it as a STRING.
        rewritten(tmp_path, lambda add: add["partitionValues"].update(dict.fromkeys(names.values(), "")))
        scan = mica.Table.open(tmp_path).scan(" AND ".join(f"{name} IS NULL" for name in names.values()))
        assert [scan.count(), scan.to_df(spark).count()] == [1, 1]


COLUMNS = (
    "id INT, s STRING, t TIMESTAMP, n TIMESTAMP_NTZ, d DATE, m DECIMAL(10,2), f DOUBLE, b BOOLEAN, o FLOAT, x BINARY"
)
VALUES = (
    "1 AS id, repeat('ab', 40) AS s, TIMESTAMP'2020-01-01 10:00:00.123456Z' AS t, "
    "TIMESTAMP_NTZ'2020-01-01 10:00:00.123456' AS n, DATE'2020-01-01' AS d, CAST(12.5 AS DECIMAL(10,2)) AS m, "
    "1.5D AS f, true AS b, 2.5F AS o, X'01' AS x"
)
WHERES = [
    "s LIKE 'abab%'",
    "s > 'aba'",
    "t = TIMESTAMP'2020-01-01 10:00:00.123456Z'",
    "m = 12.5",
    "f = 1.5D",
    "o > 2.4",
    "n = TIMESTAMP_NTZ'2020-01-01 10:00:00.123456'",
    "d <= DATE'2020-01-01'",
    "b",
    "id > 0",
    "x = X'01'",
]
SIDES = ("minValues", "maxValues")


def both(column: str, low: Any, high: Any = None) -> Callable[[dict[str, Any]], None]:
    def change(stats: dict[str, Any]) -> None:
        stats["minValues"][column], stats["maxValues"][column] = low, low if high is None else high

    return change


def leave_out(*keys: str) -> Callable[[dict[str, Any]], None]:
    return lambda stats: [stats.pop(key, None) for key in keys]  # type: ignore[return-value]


STATISTICS: dict[str, Callable[[dict[str, Any]], None]] = {
    "a truncated string": both("s", "abab", "abab\U0010ffff"),
    "a timestamp without milliseconds": both("t", "2020-01-01T10:00:00Z", "2020-01-01T10:00:01Z"),
    "a timestamp with an offset": both("t", "2020-01-01T12:00:00.123+02:00"),
    "a timestamp with micros": both("t", "2020-01-01T10:00:00.123456Z"),
    "a timestamp with a space": both("t", "2020-01-01 10:00:00.123Z"),
    "a local time without T": both("n", "2020-01-01 10:00:00.123"),
    "a local time with micros": both("n", "2020-01-01T10:00:00.123456"),
    "a decimal as a number with zeros": both("m", 12.50),
    "a decimal as an integer's neighbour": both("m", 12, 13),
    "a decimal as text": both("m", "12.50"),
    "a double as an integer": both("f", 1, 2),
    "a double as text": both("f", "1.5"),
    "bounds of booleans": both("b", False, True),
    "no numRecords": leave_out("numRecords"),
    "no nullCount": leave_out("nullCount"),
    "no bounds": leave_out(*SIDES),
    "no tightBounds": leave_out("tightBounds"),
    "wide bounds": lambda stats: stats.update(tightBounds=False, nullCount={"id": 0}),
    "keys that nobody knows": lambda stats: stats.update(future={"id": 5}, minValues={**stats["minValues"], "zz": 1}),
    "nothing": lambda stats: stats.clear(),
}


@pytest.mark.slow
def test_statistics(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, of_all, ours = delta_session, tmp_path / "all", tmp_path / "ours"
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        row = spark.sql(f"SELECT {VALUES}").toArrow()
        rare = {"delta.checkpointInterval": "1000"}
        tables = {path: mica.Table.create(path, COLUMNS, properties=rare) for path in (of_all, ours)}
        told: dict[Path, list[str]] = {of_all: [], ours: []}
        for what in STATISTICS:
            path = ours if "as text" in what else of_all  # delta-spark takes no decimals and doubles as text
            told[path].append(what)
            tables[path].append(row.set_column(0, "id", pa.array([len(told[path])], pa.int32())))
        for path, expected in told.items():
            for version, what in enumerate(expected, 1):

                def changed(add: dict[str, Any], change: Callable[[dict[str, Any]], None] = STATISTICS[what]) -> None:
                    stats = orjson.loads(add["stats"])
                    change(stats)
                    add["stats"] = orjson.dumps(stats).decode()

                rewritten(path, changed, version)
            for where in WHERES:
                found = mica.Table.open(path).scan(where).to_arrow()["id"].to_pylist()
                assert [what for n, what in enumerate(expected, 1) if n not in found] == [], where
        everything = " AND ".join(f"({where})" for where in WHERES)
        assert readers(spark, of_all, everything) == [[(n + 1,) for n in range(len(told[of_all]))]] * 3
        assert len(mica.Table.open(ours).scan("m > 13").plan.kept) == 0  # a decimal as text is a bound


def paths_of(table: Path, name: str) -> dict[str, str]:
    quoted = urllib.parse.quote(name)
    return {
        "percent-encoded": "".join(f"%{byte:02x}" for byte in name.encode()),
        "an absolute URI": f"file://{table}/{quoted}",
        "an absolute path": f"{table}/{quoted}",
        "one slash": f"file:{table}/{quoted}",
    }


@pytest.mark.slow
def test_paths(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    table = mica.Table.create(path, "id INT, p STRING", ["p"])
    table.append([{"id": 1, "p": "a b%c/d=é"}])
    (file,) = [str(found.relative_to(path)) for found in path.rglob("*.parquet")]
    for number, (what, spelled) in enumerate(paths_of(path, file).items()):
        rewritten(path, lambda add, spelled=spelled: add.update(path=spelled))
        found = [mica.Table.open(path).scan("id = 1").to_arrow().num_rows]
        found += [len(rows) for rows in readers(spark, path, "id = 1")] if number < 2 else []
        assert set(found) == {1}, what
        assert mica.Table.open(path).vacuum(dry_run=True).files == 0, what


def test_a_table_of_strangers_is_changed_as_ours(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    table = mica.Table.create(path, "id INT, p TIMESTAMP", ["p"])
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        table.append(spark.sql("SELECT id, TIMESTAMP'2020-01-01 00:00:00Z' AS p FROM VALUES (1), (2) AS t(id)"))
        (file,) = [str(found.relative_to(path)) for found in path.rglob("*.parquet")]

        def strange(add: dict[str, Any]) -> None:
            add.update(path=f"file://{path}/{urllib.parse.quote(file)}", stats=None)
            add["partitionValues"]["p"] = "2020-01-01 00:00:00"

        rewritten(path, strange)
        mica.Table.open(path).update({"id": "id + 10"}, "id = 1 AND p = TIMESTAMP'2020-01-01 00:00:00Z'")
        assert readers(spark, path, "p < TIMESTAMP'2020-01-02 00:00:00Z'") == [[(2,), (11,)]] * 3


#: As few tasks as can be: each costs as long as the work.
FEW = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
}


@pytest.mark.slow
def test_letters_beyond_ascii_are_spelled_as_delta_sparks(delta_session: SparkSession, tmp_path: Path) -> None:
    """Its VACUUM does not decode the names in the log: it deleted files in use whose names were encoded."""
    values = [
        "\u00fc",
        "e\u0301",
        "\u4e2d",
        "\U0001f600",
        "a\u00a0b",
        "\u3000",
        "\u200b",
        "\u2028",
        "\x85",
        "a b",
        "q'",
    ]
    values += ["".join(map(chr, range(33, 127))), "".join(map(chr, range(160, 256)))]
    rows = [{"id": at, "p": value} for at, value in enumerate(values)]
    mine, other = tmp_path / "mine", tmp_path / "other"
    mica.Table.create(mine, "id INT, p STRING", partition_by=["p"]).append(rows)
    frame = delta_session.createDataFrame([(row["id"], row["p"]) for row in rows], "id INT, p STRING")
    frame.coalesce(1).write.format("delta").partitionBy("p").save(str(other))
    for file in [*mine.glob("p=*/*"), *other.glob("p=*/*")]:
        os.utime(file, (1e9, 1e9))
    for path in (mine, other):
        assert mica.Table.open(path).vacuum(dry_run=True).files == 0
        with conf(delta_session, FEW):
            assert delta_session.sql(f"VACUUM delta.`{path}` RETAIN 168 HOURS DRY RUN").collect() == []
    assert spelled(mine) == spelled(other)
    # Each names the files of the other in its own commits.
    mica.Table.open(other).delete("id % 2 = 0")
    delta_session.sql(f"DELETE FROM delta.`{mine}` WHERE id % 2 = 0")
    for path in (mine, other):
        assert len(set(readers(delta_session, path, "id >= 0")[0])) == len(values) // 2
        assert readers(delta_session, path, "id >= 0")[0] == readers(delta_session, path, "id >= 0")[2]


@pytest.mark.slow
def test_a_vacuum_of_delta_spark_takes_our_deletion_vectors(delta_session: SparkSession, tmp_path: Path) -> None:
    """It ends in a `MatchError` if one is inline, current or in a tombstone."""
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableDeletionVectors": "true"})
    table.append([{"id": n} for n in range(10)])
    for where in ("id = 1", "id = 2"):
        table.delete(where)
    for file in [*tmp_path.glob("*.parquet"), *tmp_path.glob("*.bin")]:
        os.utime(file, (1e9, 1e9))
    with conf(delta_session, FEW):
        assert delta_session.sql(f"VACUUM delta.`{tmp_path}` RETAIN 168 HOURS DRY RUN").collect() == []
        delta_session.sql(f"VACUUM delta.`{tmp_path}` RETAIN 168 HOURS").collect()
    assert readers(delta_session, tmp_path, "id >= 0") == [[(n,) for n in (0, *range(3, 10))]] * 3


def spelled(path: Path) -> set[str]:
    """The directories of the files that the first commit with rows names."""
    logs = sorted((path / "_delta_log").glob("*.json"))
    lines = [orjson.loads(line) for log in logs for line in log.read_bytes().splitlines()]
    return {line["add"]["path"].rpartition("/")[0] for line in lines if "add" in line}
