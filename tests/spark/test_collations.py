"""Collated strings beside Spark: names, schemas both ways, and predicates that Spark's own comparator decides."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import mica
from mica.collation.lcase import folded
from mica.collation.names import all_names
from mica.engines.spark.types import from_spark, to_spark
from mica.errors import UserError
from mica.schema.ddl import parse_ddl, to_ddl
from tests.oracle import conf
from tests.support import dealt, refuses_between, spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORDS = ["a", "A", "ä", "Ä", "straße", "STRASSE", "b", None, "", "a ", "ch", "c", "h", "İ", "i", "ก", "เก", "ς", "Σ"]
ICU = "78.3" if spark_version() >= (4, 2) else "77.1"
#: Capitals of Unicode 17, which ICU 77 does not know.
NEWER = {0xA7CE, 0xA7D2, 0xA7D4, *range(0x16EA0, 0x16EB9)}
DDL = (
    "id INT, ci STRING COLLATE UNICODE_CI, de STRING COLLATE de_CI_AI, low STRING COLLATE UTF8_LCASE, "
    "trim STRING COLLATE UTF8_BINARY_RTRIM, p STRING, s STRUCT<x: STRING COLLATE cs>, v VARIANT"
)


@pytest.fixture(scope="module")
def words(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    """A table with collated columns, three files of the same words; tests read it only."""
    table = mica.Table.create(tmp_path_factory.mktemp("words"), DDL)
    rows = [(i, w, w, w, w, w, (w,)) for i, w in enumerate(WORDS)]
    frame = spark.createDataFrame(
        rows, "id int, ci string, de string, low string, trim string, p string, s struct<x: string>"
    ).selectExpr("*", "to_variant_object(named_struct('w', p)) AS v")
    for _ in range(3):
        table.append(frame.coalesce(1))
    return table


def test_the_names_are_sparks(spark: SparkSession) -> None:
    listed = spark.sql("SELECT NAME FROM collations()").toArrow().column("NAME").to_pylist()
    others = sorted(set(all_names()) - set(listed))
    newer = [] if ICU == "78.3" else [name for name in all_names() if name.startswith(("blo", "kk_Arab"))]
    assert (sorted([*listed, *others]), others) == (sorted(all_names()), sorted(newer))


@pytest.mark.slow
def test_lcase_over_all_code_points(spark: SparkSession) -> None:
    codes = set(range(0x110000)) - set(range(0xD800, 0xE000))
    if ICU == "77.1":
        codes -= NEWER
    points = pa.array(map(chr, dealt(sorted(codes), 0, 8)))
    low = folded(points)
    frame = spark.createDataFrame(pa.table({"c": points, "low": low})).coalesce(1)
    assert frame.where("c COLLATE UTF8_LCASE <> low").limit(5).collect() == []
    # Neighbours in our order are neighbours in Spark's: equal where the bytes are equal, else below.
    order = low.take(pc.sort_indices(low))
    pairs = pa.table({"a": order.slice(0, len(order) - 1), "b": order.slice(1)})
    pairs = pairs.append_column("same", pc.equal(pairs["a"], pairs["b"]))
    wrong = spark.createDataFrame(pairs).where("(a COLLATE UTF8_LCASE = b) <> same OR a COLLATE UTF8_LCASE > b")
    assert wrong.limit(5).collect() == []


def test_schemas_cross_both_ways(spark: SparkSession) -> None:
    schema = parse_ddl(DDL + ", m MAP<STRING, ARRAY<STRING COLLATE sv>>")
    crossed = to_spark(schema)
    assert to_ddl(from_spark(crossed)) == to_ddl(schema)
    assert spark.createDataFrame([], crossed).schema == crossed
    assert crossed["ci"].dataType.simpleString() == "string collate UNICODE_CI"


PREDICATES = [
    "ci = 'A'", "ci = 'STRASSE'", "de = 'a'", "de >= 'b'", "low = 'σ'", "low in ('B', 'i̇', null)", "trim = 'a'",
    "p collate UNICODE_CI = 'Ä'", "p collate UNICODE_CI_AI in ('a', 'STRASSE')", "s.x > 'ch'", "not s.x > 'ch'",
    "ci <> 'a' and id < 9", "ci <=> null or de = 'C'", "ci is distinct from 'a'", "ci between 'a' and 'c'",
    "startswith(ci, 'A')", "startswith(de, 'S')", "contains(de, 'TRA') or endswith(ci collate UNICODE_CI_AI, 'Ä')",
    "not endswith(s.x, 'H')", "contains(low, 'TR')", "low like 's%'",
    "startswith(v:w::string, ci)", "p collate UTF8_LCASE like '_'", "ci > 'A' and startswith(ci collate UNICODE, 's')",
    "(v:w::string) collate UNICODE_CI = 'A'", "ci = v:w::string", "ci collate utf8_binary = 'a'",
]  # fmt: skip


@pytest.mark.parametrize("where", PREDICATES)
def test_a_scan_gives_sparks_rows(spark: SparkSession, words: mica.Table, where: str) -> None:
    if refuses_between(where):
        pytest.skip("this Spark refuses BETWEEN of collated strings")
    expected = words.to_df(spark).where(where).selectExpr("id", "ci").collect()
    found = words.scan(where, columns=["id", "ci"]).to_df(spark)
    assert found.schema["ci"].dataType.simpleString() == "string collate UNICODE_CI"
    assert sorted(found.collect()) == sorted(expected)
    assert len(words.scan(where, columns={"n": "id"}, limit=1).to_df(spark).collect()) == min(1, len(expected))


def test_collated_expressions_are_columns_too(spark: SparkSession, words: mica.Table) -> None:
    found = words.scan("id < 3", columns={"same": "ci = 'a'", "id": "id"}).to_df(spark)
    assert sorted(found.collect(), key=lambda r: r.id)[::3] == [(True, 0), (True, 1), (False, 2)]


def test_searches_keep_files_and_say_so(spark: SparkSession, words: mica.Table) -> None:
    for where in ("startswith(ci, 'zzz')", "low like 'zzz%'"):
        scan = words.scan(where, spark=spark)
        assert len(scan.plan.dropped) == 0
        reasons = [row["reason"] for row in scan.explain(footers=False).to_dict()["files"]["undecided"]]
        assert reasons == ["LIKE, startswith, endswith and contains cannot use collated bounds"] * 3
        assert scan.to_df(spark).count() == 0
    with pytest.raises(UserError) as raised:
        words.scan("startswith(ci, 'zzz')").to_arrow()
    assert raised.value.code == "NEEDS_SPARK"
    for where in ("ci like 'a%'", "startswith(de collate UNICODE_AI, 'a')", "trim like 'a'"):
        with pytest.raises(UserError) as raised:
            words.scan(where)
        assert raised.value.code == "UNSUPPORTED_EXPRESSION"
        assert "COLLATE UTF8_BINARY" in str(raised.value.hint)


@pytest.mark.slow
def test_in_process_lcase_is_sparks_and_the_rest_says_so(spark: SparkSession, words: mica.Table) -> None:
    for where in (
        "low = 'STRASSE'", "low > 'a'", "low in ('Σ', 'B')", "ci collate UTF8_LCASE = 'A'", "startswith(low, 'S')",
        "endswith(low, 'ẞE')", "contains(low, 'I')", "low like '_'", "low like 's%E'", "low like 'İ'", "low ilike 'i%'",
        "upper(low) = 'a'", "left(low, 1) = 'S'", "coalesce(low, '') || 'x' = 'AX'", "length(ci) > 1",
        "trim(low) = 'A'", "if(low = 'A', NULL, low) is null",
    ):  # fmt: skip
        expected = sorted(r.id for r in words.to_df(spark).where(where).collect())
        assert sorted(words.scan(where, columns=["id"]).to_arrow().column("id").to_pylist()) == expected
        assert words.scan(where).count() == len(expected)
    for run in (lambda s: s.to_arrow(), lambda s: s.count()):
        with pytest.raises(UserError) as raised:
            run(words.scan("ci = 'a'"))
        assert raised.value.code == "NEEDS_SPARK"


def test_what_is_taken_out_keeps_its_collation_as_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    ddl = "id INT, m MAP<STRING, STRING COLLATE UTF8_LCASE>, l ARRAY<STRUCT<x: STRING COLLATE UTF8_LCASE, y: STRING>>"
    table = mica.Table.create(tmp_path, ddl)
    table.append([{"id": 1, "m": {"k": "A"}, "l": [{"x": "A", "y": "A"}]}, {"id": 2, "m": {"K": "a"}, "l": None}])
    for where in ("m['k'] = 'a'", "m.K = 'A'", "l[0].x = 'a'", "l[0].y = 'a'"):
        expected = sorted(r.id for r in table.to_df(spark).where(where).collect())
        assert table.scan(where, columns=["id"]).to_arrow().column("id").to_pylist() == expected, where
    columns = {"a": "m['k']", "b": "l[0].x", "c": "l[0].y", "e": "concat(m['k'], 'x')"}
    theirs = table.to_df(spark).selectExpr(*(f"{text} AS {name}" for name, text in columns.items()))
    assert table.scan(columns=columns).to_df(spark).schema == theirs.schema


def test_a_name_that_spark_lacks_is_kept_and_read_as_binary_when_asked(spark: SparkSession, tmp_path: Path) -> None:
    schema = parse_ddl("a STRING COLLATE de, n INT")
    schema.fields[0].metadata["__COLLATIONS"]["a"] = "ORACLE.german.12.1"  # type: ignore[index]
    table = mica.Table.create(tmp_path / "t", schema)
    table.append(pa.table({"a": ["x", "y"], "n": pa.array([1, 2], pa.int32())}))
    assert table.schema.field("a").metadata["__COLLATIONS"] == {"a": "ORACLE.german.12.1"}
    for ask in (lambda: table.scan("a = 'x'"), lambda: table.to_df(spark)):
        with pytest.raises(UserError, match=r"ORACLE\.german\.12\.1") as raised:
            ask()
        assert raised.value.code == "UNKNOWN_COLLATION"
    scan = table.scan("a COLLATE UTF8_BINARY = 'x'", columns={"a": "a COLLATE UTF8_BINARY"})
    assert scan.to_df(spark).collect() == [("x",)]
    assert scan.to_arrow().column("a").to_pylist() == ["x"]


def test_the_golden_table_reads_and_appends(spark: SparkSession, shared: Path, tmp_path: Path) -> None:
    shutil.copytree(shared / "conformance/delta-tables/collations-table", tmp_path / "t", copy_function=shutil.copy)
    for path in [tmp_path / "t", *(tmp_path / "t").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    table = mica.Table.open(tmp_path / "t")
    before = table.snapshot.metadata.schema_string
    assert table.to_df(spark).collect() == []
    frame = spark.sql("SELECT 1 AS id, 'B' AS utf8_binary_col, 'B' AS utf8_lcase_col, 'B' AS unicode_col")
    table.append(frame)
    assert table.snapshot.metadata.schema_string == before
    assert table.scan("utf8_lcase_col = 'b'").to_df(spark).count() == 1
    assert table.scan("unicode_col = 'b'").to_df(spark).count() == 0
    assert table.scan("utf8_binary_col = 'b'").count() == 0


@pytest.mark.slow
def test_an_append_writes_bounds_by_sparks_comparator(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(
        tmp_path / "t", "p INT, de STRING COLLATE de, s STRUCT<cs: STRING COLLATE cs>, b STRING", ["p"],
        {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true",
         "delta.checkpointInterval": "2"},
    )  # fmt: skip
    words = ["zebra", "Äpfel", "apfel", "Zebra", "ch", "hx", "cz", "öl"]
    frame = spark.createDataFrame(
        [(i % 2, w, (w,), w) for i, w in enumerate(words)], "p int, de string, s struct<cs: string>, b string"
    )
    table.append(frame)
    table.append(frame.where("p = 0 AND de > 'm'"))  # version 2: a checkpoint without JSON
    for opened in (table, mica.Table.open(tmp_path / "t")):
        rows = {
            (dict(r["partition_values"])["p"], i): orjson.loads(r["stats"])
            for i, r in enumerate(sorted(opened.files().to_pylist(), key=lambda r: r["modification_time"]))
        }
        assert len(rows) == 3
        for (p, _), stats in rows.items():
            mine = frame.where(f"p = {p}") if stats["numRecords"] == 4 else frame.where("p = 0 AND de > 'm'")
            ends = mine.selectExpr(
                "min(de COLLATE de)", "max(de COLLATE de)", "min(s.cs COLLATE cs)", "max(s.cs COLLATE cs)"
            ).first()
            assert ends is not None
            assert stats["statsWithCollation"] == {
                f"icu.de.{ICU}": {"minValues": {"de": ends[0]}, "maxValues": {"de": ends[1]}},
                f"icu.cs.{ICU}": {"minValues": {"s": {"cs": ends[2]}}, "maxValues": {"s": {"cs": ends[3]}}},
            }
        assert opened.snapshot.tags().to_pylist(maps_as_pydicts="lossy") == [{"mica.collatedBounds": "spark/2"}] * 3
        assert orjson.loads(opened.snapshot.domains["collations"]) == {
            "writeVersions": {"icu.cs": [ICU], "icu.de": [ICU]}
        }
    assert b"stats_parsed" in (tmp_path / "t" / "_delta_log" / f"{2:020}.checkpoint.parquet").read_bytes()


def test_what_cannot_be_a_bound_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(
        tmp_path / "t", "a STRING COLLATE de, b STRING COLLATE UNICODE_CI, c STRING COLLATE fr_CAN"
    )
    table.append(
        spark.createDataFrame([("straße", "x" * 600, "c"), ("z", "a", "d")], "a string, b string, c string").coalesce(1)
    )
    table.append(pa.table({"a": ["x"], "b": ["x"], "c": ["x"]}))  # in process: nobody who could compare
    found = [orjson.loads(text).get("statsWithCollation") for text in table.files().column("stats").to_pylist()]
    whole = {name: {"minValues": {c: a}, "maxValues": {c: b}} for name, c, a, b in (
        (f"icu.de.{ICU}", "a", "straße", "z"), (f"icu.fr_CAN.{ICU}", "c", "c", "d"))}  # fmt: skip
    assert found == [{**whole, f"icu.UNICODE_CI.{ICU}": {"minValues": {"b": "a"}}}, None]


def test_restats_gives_old_files_collated_bounds(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "s STRING, p INT", ["p"])
    table.append(pa.table({"s": ["a", "B", "x", "Y"], "p": pa.array([1, 1, 2, 2], pa.int32())}))  # nobody to compare
    table.set_collation("s", "UNICODE_CI")
    assert len(table.scan("s = 'A'", spark=spark).plan.dropped) == 0
    commit = table.restats(["s"], spark=spark)
    assert commit.files == 2
    scan = table.scan("s = 'A'", spark=spark)
    assert len(scan.plan.dropped) == 1
    assert [row.s for row in scan.to_df(spark).collect()] == ["a"]
    assert orjson.loads(table.snapshot.domains["collations"]) == {"writeVersions": {"icu.UNICODE_CI": [ICU]}}
    assert table.restats(spark=spark).files == 0


@pytest.mark.slow
def test_a_check_holds_bounds_against_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "s STRING COLLATE cs, l STRING COLLATE UTF8_LCASE")
    table.append(spark.createDataFrame([("ch", "A"), ("hz", "b")], "s string, l string").coalesce(1))
    assert (list(mica.check(table, spark=spark)), mica.check(table, spark=spark).notes) == ([], ())
    why = "need a Spark session" if ICU == "78.3" else "another engine made"  # in process it is 78.3
    assert f"icu.cs.{ICU}, which {why}" in mica.check(table).notes[0]
    commit = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    # Under cs, ch stands behind hz: a maximum that a comparison of letters would give loses it.
    commit.write_text(
        commit.read_text().replace('\\"maxValues\\":{\\"s\\":\\"ch\\"}', '\\"maxValues\\":{\\"s\\":\\"hz\\"}')
    )
    (found,) = mica.check(mica.Table.open(tmp_path / "t"), spark=spark)
    assert (found.kind, found.path) == ("collated_bound", "s")
    assert found.found == f"the maximum by icu.cs.{ICU} is 'hz', but a row holds 'ch'"


@pytest.mark.parametrize(
    ("zone", "where"),
    [
        ("America/Vancouver", "ts = timestamp'2026-12-01 12:00:00'"),
        ("America/Vancouver", "ts >= timestamp'2026-12-01 11:30:00' AND ts <= timestamp'2026-12-01 12:00:00'"),
        ("Africa/Casablanca", "ts = timestamp'2152-04-08 22:30:00' OR id = 9"),
        ("Africa/Casablanca", "CAST(ts AS DATE) > DATE'2152-04-08' OR ts < timestamp'2000-01-01'"),
        ("Europe/Berlin", "ts = timestamp'2026-12-01 20:00:00'"),
        ("UTC", "ts = timestamp'2026-12-01 19:00:00'"),
    ],
)
def test_files_are_skipped_by_what_spark_reads_alike(
    spark: SparkSession, tmp_path: Path, zone: str, where: str
) -> None:
    """Spark evaluates the rows where there is a collation: by the zones of its own database, of another year."""
    table = mica.Table.create(tmp_path / "t", "id INT, c STRING COLLATE UNICODE, ts TIMESTAMP")
    times = ["2026-12-01 19:00:00", "2026-12-01 20:00:00", "2152-04-08 21:30:00", "2152-04-08 22:30:00", "1999-01-01"]
    for i, text in enumerate(times):
        row = pa.table({"id": pa.array([i], pa.int32()), "c": ["x"], "ts": pa.array([text]).cast(pa.timestamp("us"))})
        table.append(row.set_column(2, "ts", row["ts"].cast(pa.timestamp("us", "UTC"))))
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        scan = table.scan(where=f"c = 'x' AND ({where})")
        expected = table.to_df(spark).where(f"c = 'x' AND ({where})").collect()
        assert sorted(scan.to_df(spark).collect()) == sorted(expected)
        if zone in ("Europe/Berlin", "UTC"):
            assert len(expected) == 1
            assert len(table.scan(f"c = 'x' AND {where}", timezone=zone, spark=spark).plan.kept) == 1


def test_a_text_whose_collation_spark_does_not_know_is_shown(spark: SparkSession, tmp_path: Path) -> None:
    """Spark refuses to write its type as JSON, and shows and counts the rows."""
    path = tmp_path / "t"
    mica.Table.create(path, "c STRING COLLATE UTF8_LCASE, t STRING").append([{"c": "a", "t": "b"}])
    rows = mica.sql(f"SELECT concat(c, t) AS x FROM delta.`{path}`", spark)
    assert rows.count() == 1
    assert "| ab|" in rows._show_string()  # `collect` of such a text is empty in Spark


def test_a_text_of_no_certain_collation_is_not_stored(spark: SparkSession, tmp_path: Path) -> None:
    path = mica.Table.create(tmp_path / "t", "c STRING COLLATE UTF8_LCASE, t STRING", data=[{"c": "a", "t": "b"}]).path
    query = f"SELECT concat(c, t) AS x, t FROM delta.`{path}`"
    for text in (
        f"CREATE TABLE delta.`{tmp_path}/u` USING mica AS {query}",
        f"INSERT INTO delta.`{path}` {query}",
        f"MERGE INTO delta.`{path}` a USING ({query}) b ON a.t = b.t WHEN MATCHED THEN UPDATE SET t = b.x",
    ):
        with pytest.raises(UserError, match="the column x is made of strings of different collations") as caught:
            mica.sql(text, spark)
        assert caught.value.code == "COLLATION_MISMATCH"
    with pytest.raises(Exception, match="INDETERMINATE_COLLATION_IN_SCHEMA"):
        mica.sql(f"CREATE TEMPORARY VIEW mixed AS {query}", spark)
    mica.sql(f"INSERT INTO delta.`{path}` SELECT concat(c, t) COLLATE UTF8_LCASE, t FROM delta.`{path}`", spark)
    assert sorted(mica.Table.open(path).to_arrow()["c"].to_pylist()) == ["a", "ab"]


def test_a_value_of_no_certain_collation_is_a_text_of_its_column(spark: SparkSession, tmp_path: Path) -> None:
    """As in delta-spark: PySpark has no schema of such a value, and statements failed in it."""
    ddl = "id INT, b STRING, u STRING COLLATE UNICODE_CI, s STRUCT<x: STRING>"
    table = mica.Table.create(tmp_path / "t", ddl, data=[{"id": 1, "b": "b", "u": "U", "s": {"x": "x"}}])
    place = f"delta.`{table.path}`"
    spark.createDataFrame([(1, "k", "V")], "id INT, b STRING, u STRING COLLATE UNICODE_AI").createOrReplaceTempView("k")
    mica.sql(f"UPDATE {place} SET b = concat(u, b), s.x = concat(b, u, s.x) WHERE u = 'u'", spark)
    mica.sql(
        f"""MERGE INTO {place} t USING k ON t.id = k.id WHEN MATCHED THEN UPDATE SET u = concat(t.b, k.u)
        WHEN NOT MATCHED BY SOURCE THEN DELETE""",
        spark,
    )
    assert table.refresh().to_arrow().to_pylist() == [{"id": 1, "b": "Ub", "u": "UbV", "s": {"x": "bUx"}}]
    with pytest.raises(UserError, match="the column x is made of strings of different collations"):
        mica.sql(f"INSERT INTO {place} (b) SELECT concat(u, b) AS x FROM k", spark)
    spark.catalog.dropTempView("k")


def test_a_table_has_a_default_collation_as_sparks_own(spark: SparkSession, tmp_path: Path) -> None:
    place, found = f"delta.`{tmp_path}/t`", []
    columns = "s STRING, b STRING COLLATE UTF8_BINARY, a ARRAY<STRING>, o STRUCT<x: STRING>, n INT"
    for name, source in ((place, "mica"), ("default_collation_of_spark", "parquet")):
        mica.sql(f"CREATE TABLE {name} ({columns}) USING {source} DEFAULT COLLATION utf8_lcase COMMENT 'x'", spark)
        mica.sql(f"ALTER TABLE {name} ADD COLUMN y STRING", spark)
        mica.sql(f"ALTER TABLE {name} DEFAULT COLLATION UNICODE_CI", spark)
        mica.sql(f"ALTER TABLE {name} ADD COLUMNS (z STRING, w STRING COLLATE de)", spark)
        described = mica.sql(f"DESCRIBE {name}", spark).collect()
        found.append([(row[0], row[1].removesuffix(" collate UTF8_BINARY")) for row in described])
    spark.sql("DROP TABLE default_collation_of_spark")
    assert found[0] == found[1]
    assert mica.Table.open(tmp_path / "t").properties["collation"] == "UNICODE_CI"
    with pytest.raises(UserError, match="DEFAULT COLLATION") as caught:
        mica.sql(f"CREATE TABLE delta.`{tmp_path}/u` USING mica DEFAULT COLLATION de AS SELECT 'a' AS a", spark)
    assert caught.value.code == "UNSUPPORTED_EXPRESSION"
