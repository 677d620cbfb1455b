"""Names of tables in a Hive metastore: mica's processes, and delta-spark's, find each other's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from tests.support import delta_jars

pytestmark = [pytest.mark.slow, pytest.mark.spark]

#: Runs the texts and Python expressions (`>…`, over `spark`) of each test in a session of its own, and prints what they
#: give as JSON.
PROCESS = """
import json, sys
from pathlib import Path
import mica

engine, home, given = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
conf = {
    "spark.sql.warehouse.dir": str(home / "wh"), "spark.local.dir": str(home / "local"), "spark.driver.memory": "1g",
    # The sockets of a process that ended are gone, and its JVM would ask for them.
    "spark.python.unix.domain.socket.enabled": "false",
    "spark.sql.catalogImplementation": "hive", "spark.sql.codegen.wholeStage": "false",
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home / 'metastore'};create=true",
}
if engine == "delta":
    conf |= {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    }
first = mica.session("local[1]", **conf)

def answer(text):
    if text.startswith(">"):
        return repr(eval(text[1:]))
    return sorted(map(list, spark.sql(text).collect()), key=repr)

def tried(text):
    try:
        return answer(text)
    except Exception as e:
        return str(e)

answers = {}
for test, texts in given.items():
    spark = first.newSession()
    if engine == "mica":
        mica.enable(spark)
    answers[test] = [tried(text) for text in texts]
first.stop()
print(json.dumps(answers, default=str))
"""

#: A test: the engine and the texts of each process that it needs, one after another.
Steps = tuple[tuple[str, tuple[str, ...]], ...]

#: What Spark is asked for what another process would do: an entry goes.
_DROP = ">spark._jsparkSession.sessionState().catalog().externalCatalog().dropTable('{}', '{}', False, False)"

#: A process takes its time: each runs the texts of every test whose turn it is.
TURNS = ("delta", "mica", "mica", "delta")

#: Gives what each step of a test gave.
Found = Callable[[Steps], list[list[Any]]]


@contextmanager
def jvm(jars: str) -> Iterator[Mapping[str, str]]:
    """A JVM without a Spark context, which starts and compiles Spark once: each process that has these variables makes
    a context in it, and stops it."""
    given = SparkConf(loadDefaults=False).set("spark.driver.memory", "1g").set("spark.jars", jars)
    gateway = launch_gateway(given, popen_kwargs={"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})
    place = gateway.gateway_parameters
    try:
        yield {"PYSPARK_GATEWAY_PORT": str(place.port), "PYSPARK_GATEWAY_SECRET": place.auth_token}
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()  # a JVM whose input ends ends
        gateway.proc.wait(60)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, delta_session: Any) -> Found:
    """What the tests' texts give in processes of `mica` and `delta` over one metastore; `$HOME` is its folder."""
    home = tmp_path_factory.mktemp("metastore")
    # Names that a test registers are listed after it: those whose lists are read come first.
    left = [list(steps) for steps in ALL]
    answers: list[list[list[Any]]] = [[] for _ in ALL]
    jars = ",".join(map(str, delta_jars()))
    with jvm(jars) as variables:
        for engine in TURNS:
            turn = {
                place: [text.replace("$HOME", str(home)) for text in steps.pop(0)[1]]
                for place, steps in enumerate(left)
                if steps and steps[0][0] == engine
            }
            command = [sys.executable, "-c", PROCESS, engine, str(home), json.dumps(turn)]
            environment = {**os.environ, **variables}
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=300, cwd=home, env=environment
            )
            for place, gave in json.loads(done.stdout.splitlines()[-1]).items():
                answers[int(place)].append(gave)
    assert not any(left)
    return lambda steps: answers[ALL.index(steps)]


MADE: Steps = (
    (
        "mica",
        (
            "CREATE SCHEMA shop",
            "CREATE TABLE shop.Made (id INT, v VARIANT) USING delta",
            "INSERT INTO shop.made VALUES (1, parse_json('{\"a\": 5}'))",
            "CREATE TABLE plain USING delta AS SELECT 1 AS id",
            "CREATE TABLE shop.there USING mica LOCATION '$HOME/ex t' AS SELECT 2 AS id",
            "CREATE TABLE shop.gone (id INT) USING delta",
            "DROP TABLE shop.gone",
            "CREATE TABLE shop.old USING delta AS SELECT 3 AS id",
            "ALTER TABLE shop.old RENAME TO shop.new",
            "SELECT * FROM shop.new",
            "ALTER TABLE shop.made RENAME TO shop.kept",
            "SELECT id, v:a::int FROM shop.kept",
            ">spark.sql('SELECT 4 AS id').write.format('delta').saveAsTable('shop.saved')",
            ">spark.sql('SELECT 5 AS id').writeTo('shop.written').using('delta').create()",
            "CREATE TABLE shop.moved USING delta LOCATION '$HOME/one' AS SELECT 6 AS id",
            "CREATE TABLE delta.`$HOME/two` USING delta AS SELECT 7 AS id",
            "ALTER TABLE shop.moved SET LOCATION '$HOME/two'",
            "SHOW TABLES IN shop",
        ),
    ),
    (
        "mica",
        (
            "SHOW TABLES IN shop",
            "SELECT id, v:a::int FROM shop.kept",
            "SELECT * FROM plain",
            "SELECT * FROM shop.there",
            "SELECT * FROM shop.new",
            "SELECT * FROM shop.saved",
            "SELECT * FROM shop.written",
            "SELECT * FROM shop.moved",
            "CREATE TABLE IF NOT EXISTS shop.new (other STRING) USING delta",
            "SELECT * FROM shop.new",
            "CREATE OR REPLACE TABLE shop.new USING delta AS SELECT 9 AS id",
            "DROP TABLE shop.there",
            "DROP TABLE shop.saved",
            ">sorted(path.name for path in (home / 'wh' / 'shop.db').iterdir() if any(path.iterdir()))",
            ">mica.Table.open(home / 'ex t').version",
            "SELECT * FROM shop.new",
        ),
    ),
)


@pytest.mark.slow
def test_another_process_finds_what_is_made_renamed_moved_and_dropped(found: Found) -> None:
    first, second = found(MADE)
    names = ["kept", "moved", "new", "saved", "there", "written"]
    assert first[9] == [[3]]
    assert first[11] == [[1, 5]]
    assert [row[1] for row in first[-1]] == names

    assert [row[1] for row in second[0]] == names
    assert second[1:8] == [[[1, 5]], [[1]], [[2]], [[3]], [[4]], [[5]], [[7]]]
    assert second[9] == [[3]]
    assert "saved" not in second[13]
    assert second[14:] == ["0", [[9]]]


BOTH: Steps = (
    (
        "delta",
        (
            "CREATE SCHEMA both",
            "CREATE TABLE both.theirs (id INT, s STRING) USING delta",
            "INSERT INTO both.theirs VALUES (1, 'a'), (2, 'b')",
            "CREATE TABLE both.file USING parquet AS SELECT 8 AS id",
            "CREATE TABLE both.dropped USING delta AS SELECT 1 AS id",
            "CREATE VIEW both.seen AS SELECT s, count(*) AS n FROM both.theirs GROUP BY s",
            "USE both",
            "CREATE VIEW few (a COMMENT 'x') AS SELECT id FROM theirs WHERE id > 1",
        ),
    ),
    (
        "mica",
        (
            "CREATE TABLE both.ours USING delta AS SELECT 1 AS id",
            "DELETE FROM both.theirs WHERE id = 1",
            "ALTER TABLE both.theirs ADD COLUMN w INT",
            "COMMENT ON TABLE both.theirs IS 'hers'",
            "DESCRIBE both.theirs",
            "SHOW TBLPROPERTIES both.theirs ('delta.minReaderVersion')",
            ">spark.catalog.tableExists('both.theirs'), spark.catalog.getTable('both.theirs').tableType",
            ">spark.sql(\"SELECT 3 AS id, 'c' AS s, 4 AS w\").write.mode('append').saveAsTable('both.theirs')",
            ">[row.tableName for row in spark.sql(\"SHOW TABLE EXTENDED IN both LIKE 't*'\").collect()]",
            "SELECT * FROM both.file",
            "USE both",
            "SELECT count(*) FROM theirs",
            "DROP TABLE dropped",
            ">spark.sql('SHOW TABLES').count()",
            "RESTORE TABLE theirs TO VERSION AS OF 1",
            "SELECT * FROM seen",
            "CREATE VIEW more AS SELECT a, s FROM few JOIN default.elsewhere USING (a)",
            "USE default",
            "CREATE VIEW elsewhere AS SELECT id AS a, s FROM both.theirs",
            "CREATE VIEW both.more AS SELECT a, s FROM both.few JOIN elsewhere USING (a)",
            ">spark.table('both.more').where('a = 2').collect()[0].asDict()",
            "ALTER VIEW both.more RENAME TO both.named",
            "ALTER VIEW both.seen AS SELECT max(id) AS m FROM both.theirs",
            ">mica.register('mine', home / 'wh' / 'both.db' / 'ours').version",
            "CREATE VIEW both.mine AS SELECT * FROM mine",
            ">[table.name for table in spark.catalog.listTables('both') if table.tableType == 'VIEW']",
        ),
    ),
    (
        "delta",
        (
            "SELECT * FROM both.theirs",
            "SELECT * FROM both.ours",
            "SHOW TABLES IN both",
            "SELECT * FROM both.named",
            "SELECT * FROM both.seen",
            "DESCRIBE both.few",
        ),
    ),
)


def test_each_engine_finds_the_tables_of_the_other(found: Found) -> None:
    _, answers, last = found(BOTH)
    assert answers[4] == [["id", "int", None], ["s", "string", None], ["w", "int", None]]
    assert answers[5] == [["delta.minReaderVersion", "1"]]
    assert answers[6] == "(True, 'MANAGED')"
    assert answers[8] == "['theirs']"
    assert answers[9] == [[8]]
    assert answers[11] == [[2]]
    assert answers[13] == "5"
    assert answers[15] == [["a", 1], ["b", 1]]
    assert answers[20] == "{'a': 2, 's': 'b'}"
    assert "not mine, which mica.register has here alone" in answers[24]
    assert answers[25] == "['few', 'named', 'seen']"
    assert last == [
        [[1, "a"], [2, "b"]],
        [[1]],
        [["both", name, False] for name in ("few", "file", "named", "ours", "seen", "theirs")],
        [[2, "b"]],
        [[2]],
        [["a", "int", "x"]],
    ]


TAKEN: Steps = (
    (
        "mica",
        (
            "CREATE TABLE lost USING delta AS SELECT 1 AS id",
            "SELECT * FROM lost",
            # What another process does: the entry goes, and later leads to another table.
            _DROP.format("default", "lost"),
            "SELECT * FROM lost",
            "CREATE TABLE lost USING delta AS SELECT 2 AS id",
            "SELECT * FROM lost",
            "CREATE TABLE own USING delta AS SELECT 1 AS id",
            ">mica.Table.create(home / 'other', 'id INT').append([{'id': 5}])",
            ">mica.register('own', home / 'other')",
            "SELECT * FROM own",
            ">mica.Table.open(home / 'wh' / 'own').to_arrow().to_pylist()",
        ),
    ),
)


def test_a_name_that_is_taken_away_is_unknown_and_one_of_this_process_comes_first(found: Found) -> None:
    (answers,) = found(TAKEN)
    assert answers[1] == [[1]]
    assert "TABLE_OR_VIEW_NOT_FOUND" in answers[3]
    assert answers[5] == [[2]]
    assert answers[9:] == [[[5]], "[{'id': 1}]"]


PLACED: Steps = (
    (
        "mica",
        (
            "CREATE SCHEMA placed LOCATION '$HOME/p l/a%20b'",
            "CREATE TABLE placed.Plain USING delta AS SELECT 1 AS id",
            "ALTER TABLE placed.plain RENAME TO placed.Other",
            ">spark.sql('SELECT 2 AS id').write.format('delta').saveAsTable('placed.SAVED')",
            ">sorted(path.name for path in (home / 'p l' / 'a%20b').iterdir())",
            ">[(table.name, table.tableType) for table in spark.catalog.listTables('placed')]",
            "DROP TABLE placed.other",
            "DROP TABLE placed.saved",
            ">list((home / 'p l' / 'a%20b').iterdir())",
            "CREATE TABLE placed.late USING delta AS SELECT 1 AS id",
        ),
    ),
    (
        "mica",
        (">[table.tableType for table in spark.catalog.listTables('placed')]",),
    ),
)


def test_a_table_is_where_spark_has_it_and_goes_with_its_folder(found: Found) -> None:
    """Folders had the case of their names, which Hive's do not, and of a database the %20 of its place's URI."""
    answers, last = found(PLACED)
    assert answers[4:6] == ["['other', 'saved']", "[('other', 'MANAGED'), ('saved', 'MANAGED')]"]
    assert answers[8] == "[]"
    assert last == ["['MANAGED']"]


REFUSED: Steps = (
    (
        "mica",
        (
            "CREATE SCHEMA names",
            "CREATE TABLE names.bare USING delta LOCATION '$HOME/bare' AS SELECT 1 AS id",
            ">__import__('shutil').rmtree(home / 'bare')",
            "CREATE OR REPLACE TABLE names.bare USING delta AS SELECT 2 AS id",
            ">mica.Table.open(home / 'bare').to_arrow().to_pylist()",
            "CREATE TABLE names.file USING parquet AS SELECT 3 AS id",
            "CREATE TABLE IF NOT EXISTS names.file USING delta AS SELECT 4 AS id",
            "CREATE TABLE IF NOT EXISTS names.file USING delta LOCATION '$HOME/bare'",
            "CREATE TABLE names.file USING delta LOCATION '$HOME/bare'",
            "SELECT * FROM names.file",
            "REPLACE TABLE names.unknown USING delta LOCATION '$HOME/bare' AS SELECT 5 AS id",
            "CREATE TABLE nowhere.at USING delta LOCATION '$HOME/nowhere' AS SELECT 6 AS id",
            ">mica.register('registered', home / 'bare').version",
            "CREATE TABLE kept USING delta AS SELECT 7 AS id",
            "ALTER TABLE kept RENAME TO registered",
            "SELECT * FROM registered",
            "CREATE TABLE names.dropped USING delta AS SELECT 8 AS id",
            _DROP.format("names", "dropped"),
            "SHOW TABLES IN names",
            ">[row.tableName for row in spark.sql(\"SHOW TABLE EXTENDED IN names LIKE '*e*'\").collect() if row[0]]",
        ),
    ),
)


def test_a_name_of_the_metastore_is_a_table_without_its_files_and_another_one_s_is_refused(found: Found) -> None:
    """A table was made at another place than its entry's, or beside another one's name: others never found it."""
    (answers,) = found(REFUSED)
    assert answers[4] == "[{'id': 2}]"
    assert answers[6:8] == [[], []]
    assert "TABLE_EXISTS" in answers[8]
    assert "LOCATION" not in answers[8]
    assert answers[9] == [[3]]
    assert "TABLE_NOT_FOUND" in answers[10]
    assert "CREATE SCHEMA nowhere" in answers[11]
    assert "TABLE_EXISTS" in answers[14]
    assert answers[15] == [[2]]
    assert [row[1] for row in answers[18] if row[0]] == ["bare", "file"]
    assert answers[19] == "['bare', 'file']"


ALL = (MADE, PLACED, BOTH, TAKEN, REFUSED)
