"""Statements that make a table, alter it, describe it or show how it is made, beside delta-spark where it has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from mica.query import registry
from mica.schema.ddl import type_to_ddl
from tests.oracle import conf
from tests.support import stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A table is altered and described, in this order.
OF_TABLES = (
    "DESCRIBE DETAIL {t}", "SHOW TBLPROPERTIES {t}", "DESCRIBE TABLE {t}", "SHOW COLUMNS IN {t}", "DESC EXTENDED {t}",
    "DESC {t} id", "DESC FORMATTED {t} `d`", "SHOW PARTITIONS {t}", "SELECT id FROM IDENTIFIER('{t}')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b', 'delta.columnMapping.mode' = 'name')",
    "SHOW TBLPROPERTIES {t} ('a')", "SHOW TBLPROPERTIES {t} (a)",
    "ALTER TABLE {t} ADD COLUMNS (x INT COMMENT 'new' FIRST)", "ALTER TABLE {t} ADD COLUMN s.c ARRAY<INT> AFTER a",
    "ALTER TABLE {t} ADD COLUMNS (y STRING, z STRUCT<q: INT, r: INT>)",
    "INSERT INTO {t} (id, d, y) VALUES (9, DATE'2026-01-01', 'y')",
    "ALTER TABLE {t} RENAME COLUMN y TO `y z`", "ALTER TABLE {t} ALTER COLUMN id COMMENT 'the id'",
    "ALTER TABLE {t} ADD CONSTRAINT some CHECK (id > 0)", "ALTER TABLE {t} DROP CONSTRAINT some",
    "ALTER TABLE {t} DROP COLUMNS (z, s.c)", "ALTER TABLE {t} DROP COLUMN IF EXISTS z, nope",
    "ALTER TABLE {t} CHANGE COLUMN `y z` FIRST",
    "ALTER TABLE {t} CHANGE COLUMN `y z` `y z` STRING COMMENT 'q' AFTER id",
    "ALTER TABLE {t} ALTER COLUMN id COMMENT 'again', s.b COMMENT 'a field', `y z` FIRST",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('a')", "DESCRIBE {t}", "SHOW TBLPROPERTIES {t}", "DESCRIBE DETAIL {t}",
    "RESTORE TABLE {t} TO VERSION AS OF 1", "TRUNCATE TABLE {t}",
)  # fmt: skip

#: After these delta-spark reads both tables, too.
READ = ("INSERT", "RESTORE", "ALTER TABLE {t} UNSET")

#: The rows that are compared, by the first column: DESCRIBE EXTENDED also tells of the catalog.
_COMPARED = {
    "key": "key <> 'delta.minReaderVersion'",
    "col_name": "col_name NOT IN ('Catalog', 'Namespace', 'Database', 'Table', 'Type', 'Location')",
}

#: What differs between two tables; column mapping of mica's comes with the reader's version 3, delta-spark's with 2.
_OWN = {"id", "location", "createdAt", "lastModified", "sizeInBytes", "minReaderVersion"}


@pytest.mark.slow
def test_tables_are_altered_and_described_as_by_delta_spark(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    paths = [tmp_path / "ours", tmp_path / "theirs"]
    for path in paths:
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT COMMENT 'c', s STRUCT<a: INT, b: STRING>, d DATE) USING delta "
            "PARTITIONED BY (d)"
        )
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, named_struct('a', 1, 'b', 'x'), DATE'2026-01-01')")
    for text in OF_TABLES:
        ours, theirs = (
            [
                {name: value for name, value in row.asDict().items() if name not in _OWN}
                for row in found.where(_COMPARED.get("".join(found.columns[:1]), "true")).collect()
            ]
            for found in (
                mica.sql(text.format(t=f"delta.`{paths[0]}`"), spark),
                spark.sql(text.format(t=f"delta.`{paths[1]}`")),
            )
        )
        if not text.startswith(("INSERT", "RESTORE")):
            assert ours == theirs, text
        assert stored(paths[0]) == stored(paths[1]), text
        ddl = [type_to_ddl(mica.Table.open(path).schema) for path in paths]
        assert ddl[0] == ddl[1], text
        if text.startswith(READ):
            frames = [spark.sql(f"SELECT * FROM delta.`{path}`") for path in paths]
            assert frames[0].schema.simpleString() == frames[1].schema.simpleString(), text
            rows = [sorted(map(str, frame.collect())) for frame in frames]
            assert rows[0] == rows[1], text
    assert mica.check(paths[0]).ok


@pytest.mark.slow
def test_a_table_gets_a_name_and_another_is_made_like_it(delta_session: SparkSession, tmp_path: Path) -> None:
    """As in delta-spark, whose catalog keeps the names."""
    spark, path = delta_session, tmp_path / "t"
    mica.Table.create(path, "id INT NOT NULL COMMENT 'c', d DATE", ["d"], properties={"x": "y"}).append([{"id": 1}])
    texts = (
        "CREATE TABLE {n}_seen USING {f} LOCATION '{t}'",
        "CREATE TABLE {n}_same (id INT NOT NULL COMMENT 'c') USING {f} PARTITIONED BY (d DATE) LOCATION '{t}'",
        "CREATE TABLE {n}_like LIKE {n}_seen LOCATION '{t}/../{n}_like' TBLPROPERTIES ('z' = 'w')",
    )
    try:
        for text in texts:
            mica.sql(text.format(n="ours", f="mica", t=path), spark)
            spark.sql(text.format(n="theirs", f="delta", t=path))
        for ours, theirs in ((f"ours_{one}", f"theirs_{one}") for one in ("seen", "same", "like")):
            for ask in ("SELECT * FROM {}", "DESCRIBE {}", "SHOW TBLPROPERTIES {}"):
                found, wanted = mica.sql(ask.format(ours), spark).collect(), spark.sql(ask.format(theirs)).collect()
                assert found == wanted, (ours, ask)
        for text in ("CREATE TABLE {n}_no (id INT) USING {f} LOCATION '{t}'",):
            with pytest.raises(mica.UserError, match="columns differ"):
                mica.sql(text.format(n="ours", f="mica", t=path), spark)
            with pytest.raises(Exception, match="schema"):
                spark.sql(text.format(n="theirs", f="delta", t=path))
    finally:
        for one in ("seen", "same", "like"):
            registry.forget(f"ours_{one}")
            spark.sql(f"DROP TABLE IF EXISTS theirs_{one}")


def test_a_table_is_made_again_from_its_statement(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    t = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"CREATE TABLE {t} (id BIGINT NOT NULL, d DATE, n BIGINT GENERATED ALWAYS AS (id + 1)) USING delta "
        "PARTITIONED BY (d)"
    )
    (made,) = mica.sql(f"SHOW CREATE TABLE {t}", spark).collect()
    other = tmp_path / "u"
    mica.sql(made.createtab_stmt.replace(str(tmp_path / "t"), str(other)), spark)
    assert mica.Table.open(other).schema == mica.Table.open(tmp_path / "t").schema
    # Of a name of Spark's catalog, too: delta-spark refuses the statement.
    spark.sql(f"CREATE TABLE made_again USING delta LOCATION '{other}'")
    try:
        (again,) = mica.sql("SHOW CREATE TABLE made_again", spark).collect()
        assert again.createtab_stmt.startswith("CREATE TABLE made_again (\n  id BIGINT NOT NULL,")
        with pytest.raises(Exception, match="SHOW CREATE TABLE"):
            spark.sql("SHOW CREATE TABLE made_again")
    finally:
        spark.sql("DROP TABLE made_again")


def test_history_has_the_columns_of_delta_spark(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    spark.sql(f"CREATE TABLE {t} (id INT) USING delta")
    ours, theirs = (sql(f"DESCRIBE HISTORY {t}") for sql in (lambda text: mica.sql(text, spark), spark.sql))
    assert [(f.name, f.dataType) for f in ours.schema][:15] == [(f.name, f.dataType) for f in theirs.schema]
    wanted = theirs.collect()[0].asDict(recursive=True)
    assert {name: value for name, value in ours.collect()[0].asDict(recursive=True).items() if name in wanted} == wanted


def test_a_registered_name_is_that_of_its_table_for_create_too(spark: SparkSession, tmp_path: Path) -> None:
    mica.register("known", mica.Table.create(tmp_path / "t", "a INT").path)
    mica.sql("INSERT INTO known VALUES (1)", spark)
    mica.sql("CREATE TABLE IF NOT EXISTS known (a INT) USING mica", spark)
    mica.sql(f"CREATE TABLE IF NOT EXISTS known (a INT) USING mica LOCATION '{tmp_path}/other'", spark)
    for text, why in (
        ("known (a INT) USING mica", "TABLE_EXISTS"),
        (f"known (a INT) USING mica LOCATION '{tmp_path}/other'", "the name known is that of the table"),
        ("`my table` (a INT) USING mica", "an identifier"),
        ("db.made (a INT) USING mica", "of several parts"),
    ):
        with pytest.raises(mica.UserError, match=why):
            mica.sql(f"CREATE TABLE {text}", spark)
    assert mica.sql("SELECT * FROM known", spark).collect() == [(1,)]
    mica.sql("CREATE OR REPLACE TABLE known USING mica AS SELECT 2 AS b", spark)
    assert mica.Table.open(tmp_path / "t").scan().to_arrow().to_pylist() == [{"b": 2}]


def test_texts_end_as_people_end_them(spark: SparkSession, tmp_path: Path) -> None:
    t = f"delta.`{tmp_path / 't'}`"
    mica.sql(f"CREATE TABLE {t} (a INT, m MAP<STRING, INT>) USING mica; -- made", spark)
    mica.sql(
        f"WITH c AS (SELECT 1 AS a) INSERT INTO {t} WITH d AS (SELECT a FROM c) SELECT a, map(1, 2) FROM d -- all",
        spark,
    )
    mica.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW seen (n COMMENT 'a number', m) COMMENT 'of t' AS SELECT * FROM {t} -- all",
        spark,
    )
    assert mica.sql("SELECT n, m FROM seen ;;", spark).collect() == [(1, {"1": 2})]


def test_a_with_before_a_statement_is_seen_by_all_its_queries(spark: SparkSession, tmp_path: Path) -> None:
    """An INSERT into a table of Spark's did not find what its WITH names, nor a condition of a MERGE."""
    mica.register("asked", mica.Table.create(tmp_path / "t", "a INT DEFAULT 3, b INT"))
    try:
        mica.sql("WITH q AS (SELECT 1 AS b) INSERT INTO asked SELECT DEFAULT, b FROM q", spark)
        mica.sql(f"CREATE TABLE told USING parquet LOCATION '{tmp_path / 'u'}' AS SELECT 0 AS a", spark)
        mica.sql("WITH q AS (SELECT a FROM asked) INSERT INTO told WITH r AS (TABLE q) SELECT a FROM r -- all", spark)
        assert sorted(row.a for row in spark.table("told").collect()) == [0, 3]
        merge = "MERGE INTO asked t USING q ON t.b = q.b WHEN MATCHED AND t.b IN (SELECT b FROM q) THEN DELETE"
        mica.sql(f"WITH q AS (SELECT 1 AS b) {merge}", spark)
        assert mica.sql("TABLE asked", spark).collect() == []
    finally:
        spark.sql("DROP TABLE IF EXISTS told")


def test_a_temporary_view_has_no_clause_that_it_does_not_keep(spark: SparkSession, tmp_path: Path) -> None:
    """It was made, and could not be read."""
    mica.register("viewed", mica.Table.create(tmp_path / "t", "a INT"))
    view = "CREATE OR REPLACE {}TEMP VIEW w DEFAULT COLLATION UTF8_LCASE AS SELECT {}'a' = 'A' AS same"
    for shared in ("", "GLOBAL "):
        with pytest.raises(mica.UserError, match="no clause beside its columns and a comment") as raised:
            mica.sql(f"{view.format(shared, 'a, ')} FROM viewed", spark)
        assert raised.value.code == "INVALID_ARGUMENT"
    mica.sql(view.format("", ""), spark)  # Spark's own
    assert spark.table("w").collect() == [(True,)]
    spark.catalog.dropTempView("w")


def test_a_stored_view_names_what_rows_have_beside_their_columns(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, t = delta_session, f"delta.`{tmp_path}`"
    mica.Table.create(tmp_path, "id INT").append([{"id": 1}])
    text = f"CREATE OR REPLACE VIEW with_files AS SELECT *, _metadata.file_size > 0 AS f FROM {t} t"
    try:
        for run in (lambda text: mica.sql(text, spark), spark.sql):
            run(text)
            found = spark.table("with_files")
            assert (found.columns, found.collect()) == (["id", "f"], [(1, True)])
        own = f"SELECT x.* FROM (SELECT id AS _metadata, id + 1 AS n FROM {t}) x"  # another column of that name
        mica.sql(f"CREATE OR REPLACE VIEW with_files AS {own}", spark)
        assert spark.table("with_files").collect() == mica.sql(own, spark).collect() == [(1, 2)]
        with pytest.raises(mica.UserError, match="List the columns"):
            mica.sql(f"CREATE VIEW nested AS SELECT * FROM (SELECT _metadata.file_size FROM {t})", spark)
    finally:
        spark.sql("DROP VIEW IF EXISTS with_files")


def test_a_column_named_as_the_hidden_one_hides_it(spark: SparkSession, tmp_path: Path) -> None:
    """A query of it, and of all columns, was refused."""
    mica.Table.create(tmp_path, "id INT, `_metadata` STRING").append([{"id": 1, "_metadata": "x"}])
    t = f"delta.`{tmp_path}`"
    for text, row in (("*", (1, "x")), ("_metadata", ("x",)), ("upper(_metadata)", ("X",)), ("count(_metadata)", (1,))):
        assert [tuple(found) for found in mica.sql(f"SELECT {text} FROM {t} WHERE id > 0", spark).collect()] == [row]


def test_intervals_are_stored_as_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """Of their last unit, as delta-spark 4.4.0 casts them. In a new table, the job failed in pyarrow."""
    t = f"delta.`{tmp_path}/t`"
    mica.Table.create(tmp_path / "t", "i INT, a ARRAY<INT>")
    values = (
        ("i", "INTERVAL '5' MONTH"), ("i", "INTERVAL '6' DAY"), ("i", "INTERVAL '1 2' DAY TO HOUR"),
        ("a", "array(INTERVAL '5' YEAR)"),
    )  # fmt: skip
    for column, value in values:
        mica.sql(f"INSERT INTO {t} ({column}) SELECT {value}", spark)
    rows = mica.sql(f"SELECT * FROM {t}", spark).collect()
    assert sorted(map(repr, map(tuple, rows))) == ["(26, None)", "(5, None)", "(6, None)", "(None, [5])"]
    with pytest.raises(mica.UserError, match="'i' is INTERVAL MONTH, which cannot be stored") as raised:
        mica.sql(f"CREATE TABLE delta.`{tmp_path}/new` USING mica AS SELECT INTERVAL '5' MONTH AS i", spark)
    assert raised.value.code == "UNSUPPORTED_TYPE"


def test_a_table_is_made_named_and_filled(spark: SparkSession, tmp_path: Path) -> None:
    mica.sql(
        f"CREATE TABLE made (id BIGINT, v VARIANT) USING mica LOCATION '{tmp_path}/made' "
        "TBLPROPERTIES ('delta.appendOnly' = 'true')",
        spark,
    )
    mica.sql("INSERT INTO made SELECT 1, parse_json('{\"a\": 2}')", spark)
    assert mica.sql("SELECT id, v:a::int FROM made", spark).collect()[0][1] == 2
    with pytest.raises(mica.MicaError, match="appendOnly"):
        mica.sql("DELETE FROM made", spark)
    with pytest.raises(mica.UserError, match="1 values are given for 2 columns: id, v"):
        mica.sql("INSERT INTO made SELECT 1", spark)


def test_tables_are_made_replaced_described_and_renamed(spark: SparkSession, tmp_path: Path) -> None:
    t, place = f"delta.`{tmp_path}/t`", tmp_path / "t"
    with pytest.raises(mica.UserError, match=r"no table at .* to replace"):
        mica.sql(f"REPLACE TABLE {t} (a INT) USING mica", spark)
    mica.sql(f"CREATE TABLE {t} (a INT) USING mica COMMENT 'first'", spark)
    mica.sql(f"COMMENT ON TABLE {t} IS 'second'", spark)
    assert mica.sql(f"DESCRIBE DETAIL {t}", spark).collect()[0].description == "second"
    mica.sql(f"ALTER TABLE {t} ADD COLUMNS (b INT FIRST, c INT AFTER b)", spark)
    mica.sql(f"REPLACE TABLE {t} USING mica AS SELECT 5 AS n", spark)
    assert mica.Table.open(place).history().column("operation").to_pylist() == [
        "REPLACE TABLE AS SELECT", "ADD COLUMNS", "SET TBLPROPERTIES", "CREATE TABLE",
    ]  # fmt: skip
    mica.register("before", place)
    mica.sql("ALTER TABLE before RENAME TO after", spark)
    assert mica.sql("SELECT n FROM after", spark).collect()[0].n == 5
    with pytest.raises(mica.UserError, match="must be one name"):
        mica.sql("ALTER TABLE after RENAME TO s.after", spark)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        mica.sql("SELECT n FROM before", spark)


def test_a_dropped_name_is_forgotten_and_files_at_a_location_stay(spark: SparkSession, tmp_path: Path) -> None:
    mica.sql(f"CREATE TABLE outside (n INT) USING mica LOCATION '{tmp_path / 't'}'", spark)
    mica.sql("DROP TABLE IF EXISTS outside", spark)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        mica.sql("SELECT n FROM outside", spark)
    assert mica.Table.exists(tmp_path / "t")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        mica.sql("DROP TABLE outside", spark)
    mica.sql("CREATE OR REPLACE TABLE inside (n INT) USING mica", spark)
    place = registry.registered("inside").path  # type: ignore[union-attr]
    mica.sql("ALTER TABLE inside RENAME TO within", spark)
    (Path(place) / "_delta_log" / f"{9:020}.json").write_text("{")  # a log that cannot be read
    mica.sql("DROP TABLE Within", spark)
    assert not Path(place).exists(), "as of a managed table of Spark's"
    assert not registry.is_registered("within")


def test_a_table_made_of_rows_has_none_of_the_other_ones_log(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    ddl = "id BIGINT GENERATED ALWAYS AS IDENTITY, n INT COMMENT 'c', m INT GENERATED ALWAYS AS (n + 1)"
    mica.sql(f"CREATE TABLE {t} ({ddl}) USING mica TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", spark)
    mica.sql(f"INSERT INTO {t} (n) VALUES (5), (6)", spark)
    ours, theirs = (sql(f"SELECT * FROM {t}").schema for sql in (lambda text: mica.sql(text, spark), spark.sql))
    assert ours.json() == theirs.json()
    mica.sql(f"CREATE TABLE delta.`{tmp_path / 'u'}` USING mica AS SELECT * FROM {t}", spark)
    made = mica.Table.open(tmp_path / "u")
    assert [dict(f.metadata) for f in made.schema.fields] == [{}, {"comment": "c"}, {}]
    assert sorted(made.to_arrow().column("id").to_pylist()) == [1, 2]
    for wrong in ("VALUES (DEFAULT, 7, 8)", "SELECT DEFAULT, 7, 8", "VALUES (1, 7, DEFAULT)"):
        with pytest.raises(mica.UserError, match=r"DEFAULT is given for '(id|m)', whose values the table makes itself"):
            mica.sql(f"INSERT INTO {t} (id, n, m) {wrong}", spark)


def test_a_catalogs_table_is_found_whatever_its_folder_is_called(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, wanted = delta_session, "a b%20#?[c"
    mica.Table.create(tmp_path / "a%20b%2520", "id INT")  # as the location's URI is spelled
    spark.sql(f"CREATE TABLE odd_place (id INT) USING delta LOCATION '{tmp_path / wanted}'")
    try:
        mica.sql("INSERT INTO odd_place VALUES (1), (2)", spark)
        mica.sql("DELETE FROM odd_place WHERE id = 2", spark)
        assert mica.sql("SELECT * FROM odd_place", spark).collect() == spark.table("odd_place").collect() == [(1,)]
        assert mica.Table.open(tmp_path / wanted).version == 2
    finally:
        spark.sql("DROP TABLE odd_place")


def test_tables_behind_the_end_of_a_printed_plan_are_found(spark: SparkSession, tmp_path: Path) -> None:
    mica.register("far_behind", mica.Table.create(tmp_path, "id INT"))
    text = " UNION ALL ".join(["SELECT id FROM VALUES (1) AS x(id)"] * 20 + ["SELECT id FROM far_behind"])
    with conf(spark, {"spark.sql.maxPlanStringLength": "300"}):
        assert mica.sql(text, spark).count() == 20
        assert spark.conf.get("spark.sql.maxPlanStringLength") == "300"


def test_what_makes_no_table_of_ours_does_not_succeed(spark: SparkSession, tmp_path: Path) -> None:
    for clauses in ("OPTIONS (x 'y')", "CLUSTERED BY (a) INTO 2 BUCKETS"):
        with pytest.raises(mica.MicaError, match="INVALID_EXPRESSION"):
            mica.sql(f"CREATE TABLE none (a STRING) USING mica {clauses} LOCATION '{tmp_path}/none'", spark)
    assert not spark.catalog.tableExists("none")
    assert not (tmp_path / "none").exists()


def test_a_query_is_written_to_a_folder_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "a STRING")
    table.append([{"a": "x"}])
    for folder in ("DIRECTORY '{0}' USING json", "LOCAL DIRECTORY '{0}' USING json OPTIONS ('compression' 'gzip')"):
        place = tmp_path / folder[:5].strip()
        mica.sql(f"INSERT OVERWRITE {folder.format(place)} (SELECT a FROM delta.`{table.path}`)", spark)
        assert [row.a for row in spark.read.json(str(place)).collect()] == ["x"]


def test_an_unknown_table_is_no_syntax_error(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    """Without delta-spark Spark's parser knows none of these statements."""
    monkeypatch.setattr("mica.query.changes.has_delta", lambda _: False)
    mica.register("unknown_table", mica.Table.create(tmp_path, "id INT"))
    try:
        for text in ("OPTIMIZE {}", "VACUUM {} DRY RUN", "DESCRIBE HISTORY {}", "DESCRIBE DETAIL {}",
                     "RESTORE {} TO VERSION AS OF 0", "REORG TABLE {} APPLY (PURGE)"):  # fmt: skip
            with pytest.raises(mica.UserError, match=r"TABLE_NOT_FOUND.*unknown_tabel") as e:
                mica.sql(text.format("unknown_tabel"), spark)
            assert e.value.hint == "Is unknown_table meant?"
    finally:
        registry.forget("unknown_table")


def test_a_purge_takes_dropped_columns_out_of_files(spark: SparkSession, tmp_path: Path) -> None:
    """delta-spark's statement for it, which was an OPTIMIZE that left the file as it was."""
    table = mica.Table.create(tmp_path, "id INT, gone STRING", properties={"delta.columnMapping.mode": "name"})
    table.append([{"id": 1, "gone": "x"}])
    for text, files in (("OPTIMIZE {}", 0), ("REORG TABLE {} APPLY (PURGE)", 1), ("REORG TABLE {} APPLY (PURGE)", 0)):
        table.drop_columns(["gone"], if_exists=True)
        (row,) = mica.sql(text.format(f"delta.`{tmp_path}`"), spark).collect()
        assert (row.metrics.numFilesAdded, row.metrics.numFilesRemoved) == (files, files), text
        table.refresh()
    assert table.to_arrow().to_pylist() == [{"id": 1}]
