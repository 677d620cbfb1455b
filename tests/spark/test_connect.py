"""A Spark Connect session does the whole job: ingest, append, scan, SQL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import INTERPRETED
from tests.support import CAMPAIGN, ROOT, delta_jars

pytestmark = pytest.mark.spark

START = """
import socket
import sys
from pathlib import Path
import mica
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder


def started(**conf):
    with socket.socket() as free:  # Spark's own is 15002, which another server may have
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)
    conf |= {"spark.ui.enabled": "false", "spark.connect.grpc.binding.port": str(port)}
    conf |= {"spark.sql.shuffle.partitions": "2", **INTERPRETED}
    return SparkSession.builder.remote("local[2]").config(map=conf).getOrCreate()

"""

SCRIPT = """
import datetime as dt
import gc
import random
from mica.engines.spark.engine import Spark
from mica.query import connect
from pyspark.sql.connect.plan import CachedRemoteRelation
from tests.property.test_sql_spark import DDL, Generator, _answer, _rows
from tests.support import dealt

if __name__ == "__main__":
    spark = started()
    home = Path(sys.argv[1])
    (home / "a.ndjson").write_text("".join('{"n": %d}\\n' % n for n in range(1000)))
    options = {"sort_by": ["v:n::int"], "columns": {"p": "v:n::int"}}
    report = mica.ingest_json(home / "a.ndjson", home / "t", spark=spark, **options)
    assert report.rows == 1000, report
    table = mica.Table.open(home / "t")
    table.append(spark.range(5).selectExpr("parse_json('{\\"n\\": 7}') AS v", "0 AS p"))
    frame = table.scan(where="v:n::int = 7", columns=["v"]).to_df(spark)
    assert [str(row.v) for row in frame.collect()] == ['{"n":7}'] * 6
    assert table.to_df(spark).count() == 1005
    words = mica.Table.create(home / "w", "p INT, s STRING COLLATE UNICODE_CI", ["p"])
    words.append(spark.sql("SELECT * FROM VALUES (1, 'ä'), (1, 'B'), (2, 'x') AS t(p, s)"))
    # One that is certain without the comparator, and one that is not.
    for where, found in (("s = 'b'", "B"), ("s = 'Ä'", "ä")):
        scan = words.scan(where, columns=["s"], spark=spark)
        assert len(scan.plan.dropped) == 1, scan.explain()
        assert [row.s for row in scan.to_df(spark).collect()] == [found]
    padded = mica.Table.create(home / "padded", "k CHAR(4)")
    padded.append([{"k": "x   "}])
    for pads in ("false", "true"):
        spark.conf.set("spark.sql.readSideCharPadding", pads)
        assert mica.sql(f"SELECT k FROM delta.`{padded.path}` WHERE k = 'x'", spark).count() == 1, pads
    assert mica.check(words, spark=spark).ok
    assert words.restats(spark=spark).files == 0
    try:
        mica.ingest_json(home / "none.json", home / "t", spark=spark)
    except mica.MicaError as e:
        assert e.code == "NOT_FOUND"
    (home / "bad.json").write_text("{")
    try:
        mica.ingest_json(home / "bad.json", home / "t", spark=spark)
        raise SystemExit("a broken line went in")
    except mica.CorruptDataError as e:
        assert "bad.json" in str(e), e
    several = mica.Table.create(home / "several", "id BIGINT, s STRING, v VARIANT")
    for first in (0, 10):
        values = [(i, {"n": i, "k": "ab"[i % 2], "odd": "x" if i == 3 else i}) for i in range(first, first + 10)]
        several.append([{"id": i, "s": f"s{i}", "v": v} for i, v in values])
    mica.register("several", several.path)
    several.to_df(spark).createOrReplaceTempView("whole")
    low = "v:n::int < 5 AND hash(s) IS NOT NULL"
    # None of these may run over whole tables, where a strict cast fails in rows that are not asked for.
    own_whole, connect._whole = connect._whole, None
    for text in dealt((
        f"SELECT v:k::string, count(*), '{{}}' FROM [] WHERE {low} GROUP BY ALL ORDER BY 1",
        "SELECT a.id, b.v:n::int + 1 AS m FROM [] a JOIN [] b ON a.id = b.id WHERE a.id < 7 AND b.v:k::string = 'b'",
        "WITH w AS (SELECT v:n::int AS n FROM [] WHERE s LIKE 's%') SELECT max(n) FROM w WHERE n > 1",
        "SELECT * EXCEPT (v), to_json(v) FROM [] WHERE v:odd::string = 'x'",
        "SELECT sum(CASE WHEN v:k::string = 'a' THEN v:odd::int END) FROM []",
        "SELECT a.id, a.v:odd::int AS o FROM [] a JOIN [] b ON a.id = b.id + 10",
        "SELECT v:odd::int AS o FROM [] WHERE hash(id) <> hash(3L)",
        # Of an operator whose left side is NULL the other one is not asked for.
        "SELECT id, nullif(id, 3L) + v:odd::int AS o FROM [] ORDER BY nvl2(nullif(id, 3L), v:odd::int, 0)",
        "SELECT count(*) FROM [] WHERE id < :n",
        "SELECT id FROM [] WHERE v:k::string NOT LIKE 'a%' AND s NOT LIKE 's1%'",
        "SELECT id FROM [] WHERE id < 3 = (id < 5) <= true AND v:n::int > 3",
        # A field is called as a column that stands there alone.
        "SELECT to_json(struct(v:k::string, id)) AS o, (v:k::string, v:n::int) AS p FROM []",
        # `/` asks for its last side first, and a query for the columns of the one in it that it needs.
        "SELECT v:odd::int / nullif(id + 1, 4L) AS o FROM []",
        "SELECT count(v:odd::int IS NULL) FROM []",
        "SELECT count(*) FROM (SELECT id, v:odd::int AS o FROM []) WHERE id > 4",
        # Conditions that are true of a row whose path they do not ask for, or of one that has no such value.
        "SELECT if(id = 4, v:odd::int, 0) AS o FROM [] WHERE id IN (3, 4, v:odd::int)",
        "SELECT if(id = 4, v:odd::int, 0) AS o FROM [] WHERE NOT (id = 4 AND v:odd::int = 4)",
        "SELECT if(id = 4, v:odd::int, 0) AS o FROM [] WHERE try_cast(v:odd AS INT) IS NULL",
        # A text is cast where the condition before it, Spark's, is true.
        "SELECT id, v FROM [] WHERE length(s) > 50 AND s > 3",
    ), 0):
        args = {"n": 4} if ":n" in text and "v:n" not in text else None
        found = mica.sql(text.replace("[]", "several"), spark, args)
        other = spark.sql(text.replace("[]", "whole"), args)
        assert sorted(map(str, found.collect())) == sorted(map(str, other.collect())), text
        assert found.columns == other.columns, text
    guarded = "SELECT v:odd::int AS o FROM several WHERE hash(id) = hash(CAST(:n AS BIGINT))"
    assert mica.sql(guarded, spark, {"n": 4}).collect() == [(4,)]
    try:
        mica.sql(guarded, spark, {"n": 3}).collect()
        raise SystemExit("a text became a number")
    except Exception as e:
        assert "INVALID_VARIANT_CAST" in str(e), e
    connect._whole = own_whole
    for text in ("FROM [] |> ORDER BY id |> LIMIT 3 |> WHERE id > 1 |> SELECT id", "SELECT id FROM [] |> LIMIT 30"):
        found, other = mica.sql(text.replace("[]", "several"), spark), spark.sql(text.replace("[]", "whole"))
        assert sorted(found.collect()) == sorted(other.collect()), text
    try:
        mica.sql("SELECT idd FROM several", spark)
        raise SystemExit("an unknown column was found")
    except Exception as e:
        assert "UNRESOLVED_COLUMN" in str(e), e
    # Statements of Spark's around a query.
    spark.sql("DECLARE asked BIGINT")
    for text, expected in (
        ("DESCRIBE QUERY SELECT id FROM several", [("id", "bigint", None)]),
        ("SET VAR asked = (SELECT max(id) FROM several) + 1", []),
        ("EXECUTE IMMEDIATE 'SELECT id FROM several WHERE id = ?' USING 3", [(3,)]),
        ("EXECUTE IMMEDIATE 'SELECT id FROM several WHERE id = asked - :n' USING 18 AS n", [(2,)]),
    ):
        assert mica.sql(text, spark).collect() == expected, text
    assert "FileScan parquet" in mica.sql("EXPLAIN SELECT id FROM several", spark).collect()[0].plan
    (explained,) = mica.explain(f"SELECT v:k::string FROM several WHERE {low}", spark).to_dict()["tables"]
    assert "< 5" in explained["evaluated"][0] and explained["scan"]["files"]["kept"] == 1, explained
    # What a merge keeps on the server is freed when it ends, not when Python collects garbage.
    own_kept, frames = Spark.kept, []  # held here, as the merge itself holds them no longer
    Spark.kept = lambda *given: frames.append(own_kept(*given)) or frames[-1]
    for source in ("SELECT 3L AS id UNION ALL SELECT 3L", "SELECT CAST(raise_error('no') AS BIGINT) AS id"):
        try:
            merge = several.merge(spark.sql(source), "target.id = source.id")
            merge.when_matched_update({"s": "'twice'"}).execute()
            raise SystemExit("a merge that fails was done")
        except mica.MicaError as e:
            assert e.code in ("AMBIGUOUS_MERGE", "SPARK_JOB_FAILED"), e
            held = [one._relation_id for one in gc.get_objects() if isinstance(one, CachedRemoteRelation)]
            assert held and set(held) == {None}, held
    Spark.kept = own_kept
    # Answers without rows.
    for text, first in (
        ("VACUUM [] DRY RUN", "path"),
        ("FSCK REPAIR TABLE []", "dataFilePath"),
        ("DESCRIBE HISTORY [] LIMIT 0", "version"),
    ):
        empty = mica.sql(text.replace("[]", f"delta.`{table.path}`"), spark)
        assert (empty.columns[0], empty.collect()) == (first, []), text
    # Texts that run over whole tables: through `enable` they end, and frames keep their version.
    mica.enable(spark)
    kept = spark.table("several")
    assert kept.count() == 20
    try:
        spark.sql("SELECT idd FROM several")
        raise SystemExit("an unknown column was found")
    except Exception as e:
        assert "UNRESOLVED_COLUMN" in str(e), e
    # Errors of mica's processes begin with the reason, and no view may be changed.
    for call, reason in (
        (lambda: spark.sql("SELECT v:odd::int FROM several").collect(), "[INVALID_CAST]"),
        (lambda: spark.range(1).write.format("mica").mode("append").save("lost"), "[INVALID_ARGUMENT]"),
        (lambda: spark.sql("DELETE FROM whole WHERE id = 1"), "[INTERNAL_ERROR]"),
    ):
        try:
            call()
            raise SystemExit(f"no {reason}")
        except Exception as e:
            assert str(e).startswith(reason), e
            assert getattr(e, "__notes__", [" of it."])[0].endswith(" of it."), e.__notes__
    sampled = spark.sql("SELECT id, '{x}' FROM several TABLESAMPLE (100 PERCENT) ORDER BY id DESC; ")
    assert [row.id for row in sampled.collect()] == list(range(19, -1, -1))
    # Methods that take a name: Spark made tables of its own of it.
    assert spark.read.table("several").count() == 20 and spark.catalog.tableExists("several")
    for call in (
        lambda: spark.range(1).write.mode("append").saveAsTable("several"),
        lambda: spark.range(1).write.insertInto("several"),
        lambda: spark.range(1).writeTo("several").append(),
        lambda: spark.read.option("versionAsOf", 0).table("several"),
        lambda: spark.readStream.table("several"),
        lambda: spark.sql("SELECT * FROM table_changes('several', 0)"),
    ):
        try:
            call()
            raise SystemExit("a name was taken for another table's")
        except mica.UserError as e:
            assert "on Spark Connect" in str(e) and several.path in str(e), e
    assert spark.catalog.tableExists("several") and not spark.sql("SHOW TABLES").where("NOT isTemporary").collect()
    # Lists have tables that were made by their names as such, with their databases.
    spark.sql(f"CREATE SCHEMA silver LOCATION '{home / 'silver'}'")
    spark.sql(f"CREATE TABLE silver.made (v VARIANT) USING mica LOCATION '{home / 'made'}'")
    assert spark.sql("SHOW TABLES IN silver").where("NOT isTemporary").collect() == [("silver", "made", False)]
    assert "made" not in [row.viewName for row in spark.sql("SHOW VIEWS IN silver").collect()]
    (row,) = spark.sql("SHOW TABLE EXTENDED IN silver LIKE 'made'").collect()
    assert "Provider: delta" in row.information and "v: variant" in row.information, row
    assert ["silver"] in [one.namespace for one in spark.catalog.listTables("silver")]
    assert spark.sql("SHOW VIEWS").where("viewName = 'made'").isEmpty()
    spark.sql("DROP SCHEMA silver CASCADE")
    mica.disable(spark)
    assert not spark.catalog.tableExists("several")
    mica.Table.open(several.path).append([{"id": 99}])
    assert mica.sql("SELECT count(*) FROM (TABLE several)", spark).collect() == [(21,)]
    assert kept.count() == 20
    mica.Table.open(several.path).delete("id = 99")
    # A text that the session reads otherwise than sqlglot does.
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    text = "SELECT id FROM [] WHERE \\"s\\" = 's3'"
    found = [mica.sql(text.replace("[]", "several"), spark), spark.sql(text.replace("[]", "whole"))]
    assert [frame.collect() for frame in found] == [[(3,)]] * 2, found
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "false")
    for setting, text in (
        ("spark.sql.parser.quotedRegexColumnNames", "SELECT `(v|odd)?+.+` FROM [] ORDER BY id"),
        ("spark.sql.caseSensitive", "SELECT a.id, A.s FROM [] AS a JOIN [] AS A WHERE A.id = 3 AND a.id = 12"),
        ("spark.sql.caseSensitive", "SELECT ID, (SELECT count(*) FROM [] WHERE ID = 3) FROM (SELECT id AS ID FROM [])"),
    ):
        spark.conf.set(setting, "true")
        frames = [mica.sql(text.replace("[]", "several"), spark), spark.sql(text.replace("[]", "whole"))]
        found, other = ((frame.columns, sorted(frame.collect())) for frame in frames)
        assert found == other, (text, found, other)
        spark.conf.set(setting, "false")
    # A path is no column whose collation is as strong as that of another one, and a key in backticks may be two keys.
    mixed = mica.Table.create(home / "mixed", "c STRING COLLATE UTF8_LCASE, v VARIANT")
    mixed.append([{"c": "A", "v": {"k": "a", "n.k": 1, "n": {"k": 2}}}])
    found = mica.sql(f"SELECT c || v:k::string AS x, c = v:k::string FROM delta.`{mixed.path}`", spark)
    assert (found.schema["x"].dataType.collation, found.collect()) == ("UTF8_LCASE", [("Aa", True)]), found.schema
    found = mica.sql(f"SELECT v:`n.k`::int AS x FROM delta.`{mixed.path}` WHERE v:`n.k`::int = 2", spark)
    assert found.collect() == [(2,)]
    # Where a CTE around another one comes first.
    spark.conf.set("spark.sql.legacy.ctePrecedencePolicy", "LEGACY")
    text = "SELECT (SELECT max(id) FROM several), (WITH several AS (SELECT 1 AS id) SELECT max(id) FROM several)"
    assert mica.sql(text, spark).collect() == [(19, 1)]
    spark.conf.set("spark.sql.legacy.ctePrecedencePolicy", "CORRECTED")
    dated = mica.Table.create(home / "dated", "d DATE")
    dated.append([{"d": dt.date(2020, 1, 1)}])
    text = f"SELECT d FROM delta.`{dated.path}` WHERE d <> '2020-1-1'"
    spark.conf.set("spark.sql.ansi.enabled", "false")
    for as_strings, rows in (("true", 1), ("false", 0)):
        spark.conf.set("spark.sql.legacy.typeCoercion.datetimeToString.enabled", as_strings)
        assert len(mica.sql(text, spark).collect()) == rows, as_strings
    spark.conf.set("spark.sql.ansi.enabled", "true")
    # Variables: settings are asked of the server, which alone has an environment.
    spark.conf.set("who", "s3")
    mica.Table.create(home / "named", "s STRING").append([{"s": "s3"}, {"s": "${who}"}])
    assert mica.sql(f"DELETE FROM delta.`{home}/named` WHERE s = '${{who}}'", spark).collect()[0][0] == 1
    assert mica.sql(f"SELECT s FROM delta.`{home}/named` WHERE s <> '${{who}}'", spark).collect() == [("${who}",)]
    try:
        mica.sql(f"DELETE FROM delta.`{home}/named` WHERE s = '${{env:HOME}}'", spark)
        raise SystemExit("a variable of the server was taken for a text")
    except mica.UserError as e:
        assert "the server of Spark Connect" in str(e), e
    rng = random.Random(int(sys.argv[2]))
    for name in ("one", "two"):
        table = mica.Table.create(home / name, DDL, properties={"delta.enableDeletionVectors": "true"})
        for first in (0, 20, 40):
            table.append(_rows(rng, first, 20))
        table.delete("id % 10 = 3")
        table.to_df(spark).createOrReplaceTempView(f"whole_{name}")
        mica.register(f"narrow_{name}", table.path)
    for _ in range(int(sys.argv[3])):
        text = Generator(rng.randrange(2**32)).query()
        whole = _answer(lambda: spark.sql(text.format(one="whole_one", two="whole_two")))
        found = _answer(lambda: mica.sql(text.format(one="narrow_one", two="narrow_two"), spark))
        assert isinstance(whole, str) or found == whole, (text, found, whole)
    named = mica.sql("SELECT DISTINCT input_file_name() FROM several WHERE v:n::int >= 10", spark)
    assert [row[0].removeprefix("file://") for row in named.collect()] == several.scan("v:n::int >= 10").file_uris()
    try:
        mica.sql("SELECT input_file_name() FROM narrow_one", spark)
        raise SystemExit("files that mica's kernel reads had names")
    except mica.UserError as e:
        assert "deletion vectors" in str(e), e
    # Files that are skipped need not be there.
    (gone,) = several.scan("v:n::int >= 10").file_uris()
    Path(gone).unlink()
    assert mica.sql(f"SELECT v:n::int AS n FROM delta.`{several.path}` WHERE {low}", spark).count() == 5
    mica.sql(f"INSERT OVERWRITE DIRECTORY '{home / 'other'}' USING parquet SELECT 1 AS a", spark)
    print("connected and done")
"""


#: Tables of the server's catalog are read and changed by mica.
CATALOG = """
from tests.support import dealt

if __name__ == "__main__":
    home = Path(sys.argv[1])
    spark = started(**{
        "spark.jars": sys.argv[2],
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.databricks.delta.snapshotPartitions": "1",
    })
    table = mica.Table.create(home / "c", "id BIGINT COMMENT 'c', v VARIANT")
    for first in (0, 10):
        table.append([{"id": i, "v": {"n": i}} for i in range(first, first + 10)])
    spark.sql("CREATE DATABASE shop")
    for name in ("shop.ev", "ev"):
        spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{home / 'c'}'")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 3L AS id")
    for number, (text, count) in enumerate((
        ("SELECT id FROM [] WHERE v:n::int > 15", 4),
        ("SELECT e.id FROM [] AS e JOIN plain ON e.id = plain.id WHERE e.v:n::int < 5", 1),
        ("SELECT max([].id) FROM [] WHERE [].v:n::int > 15", 1),
        ("SELECT id FROM [] VERSION AS OF 1", 10),
        ("WITH w AS (SELECT * FROM [] WHERE v:n::int < 5) SELECT w.id FROM w", 5),
    )):
        expected = sorted(spark.sql(text.replace("[]", "ev")).collect())
        for name in dealt(("shop.ev", "ev", "spark_catalog.shop.ev", "default.ev"), number):
            named = text.replace("[].", "ev.").replace("[]", name)
            found = mica.sql(named, spark).collect()
            assert len(found) == count and sorted(found) == expected, named
            if "WHERE" in text:
                (explained,) = mica.explain(named, spark).to_dict()["tables"]
                assert explained["scan"]["files"]["kept"] == 1, (named, explained)
    mica.enable(spark)
    assert spark.table("shop.ev").count() == 20
    assert spark.sql("SELECT id FROM ev").schema["id"].metadata == {"comment": "c"}
    spark.sql("UPDATE shop.ev SET v = parse_json('{}') WHERE id = 3")
    spark.sql("MERGE INTO ev USING plain ON ev.id = plain.id WHEN MATCHED THEN DELETE")
    spark.sql("INSERT INTO ev SELECT id, NULL FROM plain")
    try:  # the rows went with the server's folder
        spark.range(2).write.format("mica").mode("append").save("lost")
    except Exception as refused:
        assert "Give an absolute path" in str(refused), refused
    else:
        raise AssertionError("a relative path was taken")
    mica.disable(spark)
    history = table.history().to_pylist()
    assert [row["operation"] for row in history[:3]] == ["WRITE", "MERGE", "UPDATE"], history
    assert {row["engine_info"].partition("/")[0] for row in history} == {"mica"}, history
    # A wrong text leaves no view that hides the catalog's table, and a CTE hides it in its own text alone.
    mica.register("known", table.path)
    for wrong in ("ev", "shop.ev", "shop.ev JOIN known ON true"):
        try:
            mica.sql(f"SELECT nope FROM {wrong}", spark)
            raise SystemExit("an unknown column was found")
        except Exception as e:
            assert "UNRESOLVED_COLUMN" in str(e), e
        assert [row.name for row in spark.catalog.listTables() if row.isTemporary] == [], wrong
    assert mica.sql("WITH ev AS (SELECT 1 AS a) SELECT a FROM ev", spark).collect() == [(1,)]
    own = "WITH known AS (SELECT * FROM known WHERE id < 3) SELECT count(*) FROM known"
    assert mica.sql(own, spark).first() == (3,)
    assert len(mica.sql("TABLE shop.ev;", spark).collect()) == 20
    mica.sql("WITH w AS (SELECT 1 AS a) DELETE FROM shop.ev WHERE id = 4", spark)
    assert mica.sql("SELECT max(id) FROM ev WHERE id = 4", spark).first() == (None,)
    mica.register("id", mica.Table.create(home / "odd, name", "a INT").path)
    assert mica.sql("SELECT id, input_file_name() AS f FROM range(3)", spark).count() == 3
    assert mica.sql(f"SELECT * FROM delta.`{home / 'odd, name'}`", spark).count() == 0
    spark.sql("CREATE TEMP VIEW shown AS SELECT 5 AS id")
    assert mica.sql("SELECT id FROM shown", spark).collect() == [(5,)]
    try:
        mica.sql("CREATE TABLE plain (a INT) USING mica", spark)
        raise SystemExit("a table of Spark's was made again")
    except mica.MicaError as e:
        assert e.code == "TABLE_EXISTS", e
    print("connected and done")
"""


#: Generated queries, as in tests/property/test_sql_spark.py.
CASES = 200 if CAMPAIGN else 2


@pytest.mark.slow
def test_spark_connect_does_the_whole_job(tmp_path: Path, seed: int) -> None:
    _run(tmp_path, SCRIPT, str(seed), str(CASES), timeout=400 + 5 * CASES)


@pytest.mark.slow
def test_tables_of_the_servers_catalog(tmp_path: Path) -> None:
    if not delta_jars():
        pytest.skip("delta-spark's jars are missing: run scripts/jars.sh")
    _run(tmp_path, CATALOG, ",".join(map(str, delta_jars())))


def _run(folder: Path, script: str, *arguments: str, timeout: int = 400) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    (folder / "job.py").write_text(f"INTERPRETED = {INTERPRETED}\n{START}{script}")
    command = [sys.executable, str(folder / "job.py"), str(folder), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment)
    assert "connected and done" in done.stdout, done.stderr[-3000:]
