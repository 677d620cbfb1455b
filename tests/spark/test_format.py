"""`format("mica")`: what Spark reads and writes by it is what a scan and an append would."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import mica
from mica.format.source import register
from mica.variant import kernel

COLUMNS = (
    "id BIGINT, s STRING, st STRUCT<a:INT, b:STRING>, d DATE, ts TIMESTAMP, n TIMESTAMP_NTZ, dec DECIMAL(10,2), "
    "arr ARRAY<STRING>, m MAP<STRING,DOUBLE>, b BINARY, f FLOAT, x DOUBLE, ok BOOLEAN, small SMALLINT, "
    "v VARIANT, p STRING"
)


@pytest.fixture
def own(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def row(number: int) -> dict[str, Any]:
    when = dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=number)
    made = {
        "id": number, "s": f"x{number % 7}", "st": {"a": number, "b": f"b{number % 3}"}, "d": when.date(), "ts": when,
        "n": when.replace(tzinfo=None), "dec": number, "arr": ["a", None], "m": {"k": number / 4}, "b": b"\x00\xff",
        "f": number / 8, "x": number / 3, "ok": number % 2 == 0, "small": number % 100,
        "v": {"k": number, "kind": f"kind{number % 5}", "odd": number if number % 2 else f"text {number}"},
        "p": f"part {number % 2}",
    }  # fmt: skip
    return {name: None if number % 11 == 10 and name not in ("id", "p") else value for name, value in made.items()}


def table(path: Path, **properties: str) -> mica.Table:
    made = mica.Table.create(path, COLUMNS, ["p"], properties)
    for start in range(0, 200, 40):
        made.append([row(number) for number in range(start, start + 40)])
    return made


def rows_of(frame: DataFrame) -> list[str]:
    """The rows in any order, Variants as JSON."""
    return sorted(map(repr, frame.selectExpr("to_json(struct(*))").collect()))


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("mica").options(**options).load(str(path))


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
        {"delta.columnMapping.mode": "id"},
    ],
    ids=["plain", "mapped", "by id"],
)
def test_rows_and_filters_are_those_of_a_scan(
    own: SparkSession, tmp_path: Path, properties: dict[str, str], rng: random.Random
) -> None:
    made = table(tmp_path / "t", **properties)
    made.delete("id % 13 = 5")
    frame, wanted = load(own, tmp_path / "t"), made.to_df(own)
    assert rows_of(frame) == rows_of(wanted)
    filters = [
        "id > 150", "s LIKE 'x1%'", "s IN ('x1', 'x3', 'none')", "st.a < 50", "d >= DATE'2020-01-05'",
        "ts > TIMESTAMP'2020-01-06 01:00:00'", "n <= TIMESTAMP_NTZ'2020-01-03 00:00:00'", "dec = 77.00", "f > 20.5",
        "x < 0.4 OR x > 60", "ok", "NOT ok", "small <> 3", "v IS NULL", "p = 'part 1'", "s <=> NULL", "st IS NOT NULL",
        "variant_get(v, '$.k', 'int') < 9", "b = X'00FF'", "s LIKE '%3'", "s LIKE '%x%'", "NOT (s IN ('x1'))",
    ]  # fmt: skip
    for count in (1, 1, 2, 3):
        where = " AND ".join(f"({one})" for one in rng.sample(filters, count))
        pushed = load(own, tmp_path / "t", pushFilters="true").where(where)
        assert rows_of(pushed) == rows_of(wanted.where(where)), where


@pytest.mark.slow
def test_a_frame_is_read_any_number_of_times(own: SparkSession, tmp_path: Path) -> None:
    """Spark would use the filters of one query for the next, and of one use for another."""
    table(tmp_path / "t")
    frame = load(own, tmp_path / "t")
    assert [frame.where(where).count() for where in ("id = 3", "id < 3 OR id > 197", "id IS NOT NULL")] == [1, 5, 200]
    assert frame.where("id = 3").union(frame.where("id < 3")).count() == 4


def test_typed_paths_are_columns_and_odd_values_null(own: SparkSession, tmp_path: Path) -> None:
    table(tmp_path / "t")
    frame = load(own, tmp_path / "t", typedPaths="k BIGINT, kind STRING, `the odd` INT AS v:odd")
    assert "v" not in frame.columns
    found = frame.where("kind = 'kind1' AND k > 180").select("k", "the odd").orderBy("k").collect()
    assert [tuple(one) for one in found] == [(181, 181), (191, 191), (196, None)]
    assert load(own, tmp_path / "t", typedPaths="k INT", columns="id, v").columns == ["id", "v", "k"]
    mica.Table.open(tmp_path / "t").set_properties({"mica.paths": "k BIGINT"})
    own.sql(f"CREATE OR REPLACE TEMPORARY VIEW by_sql USING mica OPTIONS (path '{tmp_path / 't'}')")
    assert own.sql("SELECT max(k), count(*) FROM by_sql WHERE id < 10").first() == (9, 10)
    with pytest.raises(Exception, match="has the name of another column"):
        load(own, tmp_path / "t", typedPaths="id INT")


@pytest.mark.slow
def test_options_choose_rows_columns_and_versions(own: SparkSession, tmp_path: Path) -> None:
    made = table(tmp_path / "t", **{"delta.enableChangeDataFeed": "true"})
    assert sorted(load(own, tmp_path / "t", where="v:k::int < 3", columns="id").collect()) == [(0,), (1,), (2,)]
    assert load(own, tmp_path / "t", versionAsOf="2").count() == 80
    assert own.read.format("mica").schema("id BIGINT").load(str(tmp_path / "t")).columns == ["id"]
    made.delete("id < 3")
    changes = load(own, tmp_path / "t", readChangeFeed="true", startingVersion=str(made.version))
    assert sorted(changes.select("id", "_change_type").collect()) == [(0, "delete"), (1, "delete"), (2, "delete")]
    made.add_columns("later INT")
    feed = {"readChangeFeed": "true", "startingVersion": str(made.version - 1)}
    for end in (1, 0):
        found = load(own, tmp_path / "t", **feed, endingVersion=str(made.version - end))
        assert ("later" in found.columns, found.count()) == (end == 0, 3)
    for wrong, text in (
        ({"wheer": "id = 1"}, "The nearest one is where"),
        ({"where": "no = 1"}, "there is no column 'no'"),
        ({"versionAsOf": "x"}, "a version"),
        ({"columns": "idd"}, "idd"),
    ):
        with pytest.raises(Exception, match=text):
            load(own, tmp_path / "t", **wrong).count()
    with pytest.raises(Exception, match=r"filter the DataFrame: \.load\(path\)\.where\(…\)"):
        load(own, tmp_path / "t", where="p COLLATE UNICODE_CI = 'P1'")
    with pytest.raises(Exception, match="Delta table"):
        load(own, tmp_path / "none").count()
    with pytest.raises(Exception, match="id is BIGINT"):
        own.read.format("mica").schema("id STRING").load(str(tmp_path / "t")).count()


@pytest.mark.slow
def test_writes_are_commits_of_mica(own: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    frame = own.createDataFrame([(i, f"p{i % 2}", f'{{"k":{i}}}') for i in range(20)], "id INT, p STRING, j STRING")
    frame = frame.selectExpr("id", "p", "parse_json(j) AS v")
    write = frame.write.format("mica").mode("append").option("partitionBy", "p")
    write.option("delta.enableDeletionVectors", "true").option("mica.shredding", "k: int").save(place)
    made = mica.Table.open(place)
    assert (made.version, made.count(), made.partition_by) == (0, 20, ("p",))
    assert made.properties["delta.enableDeletionVectors"] == "true"
    for file in made.files().to_pylist():  # the table's rules hold on workers too
        reader = kernel.open_file(*made.snapshot.locate(file["path"]), file["size"])
        assert reader.tree(("v",)) == (pa.struct({"k": pa.int32()}), False)
    assert made.scan("v:k::int > 17").count() == 2
    assert len(made.scan("v:k::int > 100").kept) == 0
    for _ in range(2):
        frame.write.format("mica").mode("append").options(txnAppId="job", txnVersion="7").save(place)
    assert mica.Table.open(place).count() == 40
    one = frame.where("p = 'p1'")
    one.write.format("mica").mode("overwrite").option("replaceWhere", "p = 'p1'").save(place)
    assert mica.Table.open(place).count() == 30
    others = one.selectExpr("-id AS id", "p", "v")
    others.write.format("mica").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(place)
    assert (mica.Table.open(place).count(), mica.Table.open(place).scan("p = 'p1' AND id > 0").count()) == (30, 0)
    options = {"partitionOverwriteMode": "dynamic", "replaceWhere": "p = 1"}
    with pytest.raises(Exception, match="replaceWhere"):
        one.write.format("mica").mode("overwrite").options(**options).save(place)
    kept = mica.Table.open(place).scan("NOT (v:k::int BETWEEN 3 AND 8)", ["id"]).to_arrow()
    few = frame.where("id = 5").selectExpr("1000L AS id", "'new' AS p", "v")
    few.write.format("mica").mode("overwrite").option("replaceWhere", "v:k::int BETWEEN 3 AND 8").save(place)
    left = mica.Table.open(place).scan(columns=["id"]).to_arrow().column("id").to_pylist()
    assert sorted(left) == sorted([*kept.column("id").to_pylist(), 1000])
    more = frame.selectExpr("*", "id * 2 AS twice")
    with pytest.raises(Exception, match="no column 'twice'"):
        more.write.format("mica").mode("append").save(place)
    before = {str(path) for path in tmp_path.rglob("*.parquet")}
    with pytest.raises(Exception, match="ROWS_OUTSIDE_OVERWRITE"):
        frame.write.format("mica").mode("overwrite").option("replaceWhere", "p = 'p1'").save(place)
    assert {str(path) for path in tmp_path.rglob("*.parquet")} == before
    assert _versions_with_metadata(place) == [0]  # whoever writes beside it meets no other columns
    more.write.format("mica").mode("append").option("mergeSchema", "true").save(place)
    assert mica.Table.open(place).schema.names == ["id", "p", "v", "twice"]
    frame.write.format("mica").mode("overwrite").save(place)
    assert _versions_with_metadata(place) == [0, 5]
    assert rows_of(mica.Table.open(place).to_df(own).select("id", "p", "v")) == rows_of(frame)
    assert mica.check(place).ok


def _versions_with_metadata(place: str) -> list[int]:
    """The versions that name the table's columns and properties."""
    log = sorted(Path(place, "_delta_log").glob("*.json"))
    return [int(path.stem) for path in log if '"metaData"' in path.read_text()]


@pytest.mark.slow
def test_rules_follow_the_session_as_in_an_append(own: SparkSession, tmp_path: Path) -> None:
    """Defaults, generated columns and constraints were evaluated in UTC, and as ANSI: the days of another zone were
    those of UTC, and rows were refused that `Table.append` takes."""
    columns = (
        "s STRING, ts TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(ts AS DATE)), "
        "said TIMESTAMP DEFAULT CAST('2024-01-01 02:00:00' AS TIMESTAMP), "
        "number INT GENERATED ALWAYS AS (CAST(s AS INT))"
    )
    zone = own.conf.get("spark.sql.session.timeZone")
    own.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    own.conf.set("spark.sql.ansi.enabled", "false")
    try:
        frame = own.sql("SELECT 'x' AS s, TIMESTAMP'2024-01-01 02:00:00' AS ts")
        found = []
        for number, options in enumerate((None, {}, {"timeZone": "Asia/Tokyo"}, {"timeZone": "UTC"})):
            made = mica.Table.create(tmp_path / str(number), columns)
            if (options or {}).get("timeZone") != "UTC":
                made.add_constraint("early", "hour(ts) < 5")
            if options is None:
                made.append(frame)
            else:
                frame.write.format("mica").mode("append").options(**options).save(str(tmp_path / str(number)))
            found.append(made.refresh().to_arrow().to_pylist())
        with pytest.raises(Exception, match="the CHECK constraint 'early'"):
            frame.write.format("mica").mode("append").option("timeZone", "UTC").save(str(tmp_path / "0"))
    finally:
        own.conf.set("spark.sql.session.timeZone", zone)
        own.conf.unset("spark.sql.ansi.enabled")
    appended, followed, given, other = found
    assert appended == followed == given
    assert (appended[0]["day"], appended[0]["number"]) == (dt.date(2024, 1, 1), None)
    assert other[0]["day"] == dt.date(2023, 12, 31)
