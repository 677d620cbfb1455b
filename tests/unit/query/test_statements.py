"""Statements as plain values, and the place of what is wrong in them."""

from __future__ import annotations

import time
from typing import Any

import pytest

import mica
from mica.collation.identifier import Identifier
from mica.query.row_statements import Delete, Insert, MergeInto, MergeWhen, Update, behind, of_columns, with_defaults
from mica.query.statement_parts import name_parts
from mica.query.statements import (
    Create,
    CreateLike,
    History,
    Inserts,
    Optimize,
    Selected,
    Statement,
    VacuumOf,
    parse_statement,
)
from mica.query.table_statements import TableCall
from mica.query.view_statements import DropView, RenameView, StoredView, UnkeptView, View
from mica.schema.ddl import parse_ddl

STATEMENTS: dict[str, Statement] = {
    "FROM (SELECT 1 AS a) q INSERT INTO t (a) SELECT a INSERT OVERWRITE u.v PARTITION (p) SELECT a": Inserts(
        (("t",), ("u", "v")),
        (
            "INSERT INTO t (a) FROM (SELECT 1 AS a) q SELECT a",
            "INSERT OVERWRITE u.v PARTITION (p) FROM (SELECT 1 AS a) q SELECT a",
        ),
    ),
    "WITH q AS (TABLE r) FROM q INSERT INTO t SELECT *": Inserts(
        (("t",),), ("WITH q AS (TABLE r) INSERT INTO t FROM q SELECT *",)
    ),
    "ALTER VIEW a.w RENAME TO x": RenameView(("a", "w"), ("x",)),
    "ALTER VIEW w SET TBLPROPERTIES ('RENAME' = 'x')": None,
    "DROP VIEW IF EXISTS a.`w`": DropView(("a", "w")),
    "ALTER VIEW w AS SELECT 1": StoredView("ALTER VIEW w AS ", "SELECT 1", ("w",), alters=True),
    "/* a */ DELETE -- b\n FROM t": Delete(("t",), "t", None),
    "DESCRIBE/* a */HISTORY t": History(("t",), None),
    "ALTER /* a */ VIEW w AS SELECT 1": StoredView("ALTER /* a */ VIEW w AS ", "SELECT 1", ("w",), alters=True),
    "DELETE FROM delta.`/a b`": Delete(("delta", "/a b"), "/a b", None),
    "delete from t as x where x.a = 1 and v:x.a::int = 2;": Delete(("t",), "x", "x.a = 1 and v:x.a::int = 2"),
    "UPDATE t SET a = a + 1, t.b = concat('x,y', t.c) WHERE t.a > 1": Update(
        ("t",), "t", {"a": "a + 1", "`t`.`b`": "concat('x,y', t.c)"}, "t.a > 1"
    ),
    "UPDATE t x SET x.s.`a.b` = 1, `c.d` = 2, `e f` = x.s.a": Update(
        ("t",), "x", {"`x`.`s`.`a.b`": "1", "`c.d`": "2", "`e f`": "x.s.a"}, None
    ),
    "WITH q AS (SELECT 1 AS INSERT), r (a) AS (TABLE u) INSERT INTO t SELECT * FROM q": Insert(
        ("t",), (), "SELECT * FROM q", overwrite=False, ctes="WITH q AS (SELECT 1 AS INSERT), r (a) AS (TABLE u) "
    ),
    "with q as (select 1) insert overwrite t with r as (table q) table r": Insert(
        ("t",), (), "with r as (table q) table r", overwrite=True, ctes="with q as (select 1) "
    ),
    "WITH q AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT * FROM q)": Delete(
        ("t",), "t", "id IN (SELECT * FROM q)", ctes="WITH q AS (SELECT 1) "
    ),
    "WITH RECURSIVE q (n) MAX RECURSION LEVEL 5 AS (SELECT 1) UPDATE t SET id = (SELECT n FROM q)": Update(
        ("t",), "t", {"id": "(SELECT n FROM q)"}, None,
        ctes="WITH RECURSIVE q (n) MAX RECURSION LEVEL 5 AS (SELECT 1) ",
    ),
    "WITH q AS (SELECT 1 AS id) MERGE INTO t USING q ON t.id = q.id WHEN MATCHED THEN DELETE": MergeInto(
        ("t",), "t", "SELECT * FROM q", "q", "t.id = q.id", (MergeWhen("matched", None, "delete"),),
        ctes="WITH q AS (SELECT 1 AS id) ",
    ),
    "OPTIMIZE t WHERE p = 1 ZORDER BY a, v:b": Optimize(("t",), "p = 1", ("a", "v:b")),
    "REPLACE TABLE t USING mica COMMENT 'it''s' TBLPROPERTIES (a = 1) AS SELECT 1": Create(
        ("t",), "", "overwrite", properties={"a": "1", "comment": "it's"}, query="SELECT 1", replaces=True
    ),
    "UPDATE t SET end = case WHERE case = 5": Update(("t",), "t", {"`end`": "case"}, "case = 5"),
    "-- why\nUPDATE t SET a = CASE WHEN b THEN 1 END": Update(("t",), "t", {"a": "CASE WHEN b THEN 1 END"}, None),
    "INSERT INTO t (a, `b c`) VALUES (1, 'x')": Insert(("t",), ("a", "b c"), "VALUES (1, 'x')", overwrite=False),
    "INSERT INTO t BY NAME TABLE u": Insert(("t",), (), "TABLE u", overwrite=False, by_name=True),
    "INSERT INTO s.t BY NAME REPLACE WHERE t.p IS NOT DISTINCT FROM (1 + 1) OR p = 'select' SELECT * FROM u": Insert(
        ("s", "t"), (), "SELECT * FROM u", overwrite=True, by_name=True,
        where="t.p IS NOT DISTINCT FROM (1 + 1) OR p = 'select'",
    ),
    "INSERT OVERWRITE TABLE t PARTITION (p = -1.5e-3D, `q r`, d = DATE'2024-01-01') (a) SELECT 1": Insert(
        ("t",), ("a",), "SELECT 1", overwrite=True, partition={"p": "-1.5e-3D", "q r": None, "d": "DATE'2024-01-01'"}
    ),
    "INSERT WITH SCHEMA EVOLUTION INTO t PARTITION (p = 'it''s (', q = null) BY NAME TABLE u": Insert(
        ("t",), (), "TABLE u", overwrite=False, by_name=True, evolves=True, partition={"p": "'it''s ('", "q": "null"}
    ),
    **{
        f"INSERT INTO t {before}REPLACE USING (a, `b c`) TABLE u": Insert(
            ("t",), (), "TABLE u", overwrite=True, by_name="BY NAME" in before, using=("a", "b c")
        )
        for before in ("", "x ", "AS x ", "BY NAME ", "AS `y` BY NAME ")
    },
    "INSERT INTO TABLE t (SELECT 1)": Insert(("t",), (), "(SELECT 1)", overwrite=False),
    "CREATE OR REPLACE TEMP VIEW w (a, b) AS WITH x AS (SELECT 1) SELECT *, 2 FROM x": View(
        "w", ("a", "b"), replace=True, shared=False, query="WITH x AS (SELECT 1) SELECT *, 2 FROM x"
    ),
    "CREATE TABLE s.c USING parquet COMMENT 'AS SELECT' AS (SELECT a AS b FROM t);": Selected(
        "CREATE TABLE s.c USING parquet COMMENT 'AS SELECT' AS ", "(SELECT a AS b FROM t)"
    ),
    "CREATE OR REPLACE VIEW a.v (x COMMENT 'y') AS SELECT 1": StoredView(
        "CREATE OR REPLACE VIEW a.v (x COMMENT 'y') AS ", "SELECT 1", ("a", "v")
    ),
    "CREATE TEMPORARY VIEW w (a COMMENT 'x', b) COMMENT r'c\\' AS SELECT 1, 2 ; -- done\n;": View(
        "w", ("a", "b"), False, False, "SELECT 1, 2"
    ),
    "DELETE FROM t WHERE a = ';' -- not; this\n;": Delete(("t",), "t", "a = ';'"),
    "INSERT INTO t (values, n) VALUES (1, 2)": Insert(("t",), ("values", "n"), "VALUES (1, 2)", overwrite=False),
    "INSERT INTO t ((SELECT 1) UNION ALL SELECT 2)": Insert(
        ("t",), (), "((SELECT 1) UNION ALL SELECT 2)", overwrite=False
    ),
    "INSERT INTO t PARTITION (p = 'a' ' b') SELECT 1": Insert(
        ("t",), (), "SELECT 1", overwrite=False, partition={"p": "'a' ' b'"}
    ),
    "CREATE TEMP VIEW IF NOT EXISTS w AS SELECT 1": UnkeptView("SELECT 1"),
    "CREATE OR REPLACE GLOBAL TEMP VIEW w DEFAULT COLLATION UTF8_LCASE AS SELECT 1": UnkeptView("SELECT 1"),
    "INSERT OVERWRITE s.t SELECT * FROM x": Insert(("s", "t"), (), "SELECT * FROM x", overwrite=True),
    "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED AND s.id > 0 THEN UPDATE SET t.a = s.id, "
    "b = 2 WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY TARGET THEN INSERT (id, a) VALUES (s.id, coalesce(1, 2)) "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE": MergeInto(
        ("t",), "t", "(SELECT 1 AS id)", "s", "t.id = s.id",
        (
            MergeWhen("matched", "s.id > 0", "update", {"`t`.`a`": "s.id", "b": "2"}),
            MergeWhen("matched", None, "delete"),
            MergeWhen("not matched", None, "insert", {"id": "s.id", "a": "coalesce(1, 2)"}),
            MergeWhen("not matched by source", None, "delete"),
        ),
    ),
    "MERGE INTO t x USING delta.`/s` y ON x.id = y.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *":
        MergeInto(
            ("t",), "x", "SELECT * FROM delta.`/s`", "y", "x.id = y.id",
            (MergeWhen("matched", None, "update"), MergeWhen("not matched", None, "insert")),
        ),
    "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *": MergeInto(
        ("t",), "t", "SELECT * FROM s", "s", "t.id = s.id", (MergeWhen("matched", None, "update"),), evolves=True
    ),
    "MERGE INTO t USING s FOR VERSION AS OF 3 AS o ON t.id = o.id WHEN MATCHED THEN DELETE": MergeInto(
        ("t",), "t", "SELECT * FROM s FOR VERSION AS OF 3", "o", "t.id = o.id", (MergeWhen("matched", None, "delete"),)
    ),
    "MERGE INTO t USING s TIMESTAMP AS OF now() - INTERVAL 1 DAY ON t.id = s.id WHEN MATCHED THEN DELETE": MergeInto(
        ("t",), "t", "SELECT * FROM s TIMESTAMP AS OF now() - INTERVAL 1 DAY", "s", "t.id = s.id",
        (MergeWhen("matched", None, "delete"),),
    ),
    "OPTIMIZE t WHERE p = 1 ZORDER BY (a, v:b.c)": Optimize(("t",), "p = 1", ("a", "v:b.c")),
    "VACUUM t RETAIN 240 HOURS DRY RUN": VacuumOf(("t",), 240.0, dry_run=True),
    "VACUUM t FULL RETAIN 1 HOURS": VacuumOf(("t",), 1.0, dry_run=False),
    "VACUUM t DRY RUN FULL": VacuumOf(("t",), None, dry_run=True),
    "VACUUM t RETAIN 1 HOURS LITE DRY RUN": VacuumOf(("t",), 1.0, dry_run=True, lite=True),
    "FSCK REPAIR TABLE t": TableCall(("t",), "fsck", {"dry_run": False}),
    "fsck repair table delta.`/a` dry run": TableCall(("delta", "/a"), "fsck", {"dry_run": True}),
    "FSCK REPAIR TABLE '/a' DRY RUN": TableCall(("delta", "/a"), "fsck", {"dry_run": True}),
    "VACUUM t": VacuumOf(("t",), None, dry_run=False),
    "DESC HISTORY t LIMIT 2": History(("t",), 2),
    "DESCRIBE HISTORY '/a b'": History(("delta", "/a b"), None),
    "VACUUM '/a' DRY RUN": VacuumOf(("delta", "/a"), None, dry_run=True),
    'OPTIMIZE "/a" WHERE p = 1': Optimize(("delta", "/a"), "p = 1", ()),
    "CREATE TABLE IF NOT EXISTS t (a INT, v VARIANT) USING mica PARTITIONED BY (a) LOCATION '/x' "
    "TBLPROPERTIES ('delta.appendOnly' = 'true', b.c = 3)": Create(
        ("t",), "a INT, v VARIANT", "ignore", ("a",), "/x", {"delta.appendOnly": "true", "b.c": "3"}
    ),
    "CREATE TABLE t (a STRING) USING mica DEFAULT COLLATION `unicode_ci` COMMENT 'c'": Create(
        ("t",), "a STRING", "error", properties={"comment": "c"}, collation=Identifier("icu", "UNICODE_CI")
    ),
    "CREATE TABLE t USING mica AS SELECT 1 AS a": Create(("t",), "", "error", query="SELECT 1 AS a"),
    "CREATE EXTERNAL TABLE t (a INT) USING mica LOCATION '/x'": Create(("t",), "a INT", "error", location="/x"),
    "CREATE EXTERNAL TABLE t USING parquet LOCATION '/x' AS SELECT 1": Selected(
        "CREATE EXTERNAL TABLE t USING parquet LOCATION '/x' AS ", "SELECT 1"
    ),
    "create or replace TABLE t (a INT) USING mica": Create(("t",), "a INT", "overwrite"),
    "CREATE TABLE t (a INT) USING mica CLUSTER BY (a, s.`b c`)": Create(
        ("t",), "a INT", "error", cluster_by=("a", "s.`b c`")
    ),
    "OPTIMIZE t FULL": Optimize(("t",), None, (), full=True),
}  # fmt: skip


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_is_a_value(text: str) -> None:
    assert parse_statement(text) == STATEMENTS[text]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1", "CREATE TABLE t (a INT) USING parquet", "SHOW TABLES", "",
        "WITH insert AS (SELECT 'INSERT INTO t' AS merge) SELECT merge FROM insert", "WITH q AS (${merge}) SELECT 1",
        "WITH q AS (SELECT 1) SELECT count(*) delete FROM q", "WITH q AS (SELECT 1) SELECT * FROM (q) update",
        "CREATE TABLE t (a INT COMMENT 'AS') USING parquet COMMENT 'USING mica'",
    ],
)  # fmt: skip
def test_other_texts_are_not_ours(text: str) -> None:
    assert parse_statement(text) is None


@pytest.mark.parametrize(
    "query", ["SELECT 'USING mica' AS a", "SELECT 1 -- USING mica", "SELECT * FROM a JOIN b USING mica"]
)
def test_a_query_that_says_using_mica_makes_no_table_of_ours(query: str) -> None:
    assert parse_statement(f"CREATE TABLE t USING parquet AS {query}") == Selected(
        "CREATE TABLE t USING parquet AS ", query.partition(" --")[0]
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("DELETE FROM t x y", "the end is expected"),
        ("UPDATE t WHERE a = 1", "SET is expected"),
        ("INSERT INTO t", "a query or VALUES is expected"),
        ("INSERT INTO t PARTITION (p = 1, P = 2) SELECT 1", "P is named twice"),
        ("INSERT INTO t PARTITION (p = id) SELECT 1", "a literal is expected, 'id' is found"),
        ("INSERT INTO t PARTITION (p = DEFAULT) SELECT 1", "a literal is expected"),
        ("INSERT INTO t PARTITION (p = 1) REPLACE WHERE p = 1 SELECT 1", "a query or VALUES is expected"),
        ("INSERT INTO t REPLACE WHERE SELECT 1", "an expression is expected"),
        ("INSERT INTO t REPLACE WHERE a = 1", "a query or VALUES is expected"),
        ("INSERT INTO t REPLACE ON a = 1 SELECT 1", "INSERT … REPLACE ON is not supported here"),
        ("INSERT INTO t x REPLACE ON x.a = 1 SELECT 1", "INSERT … REPLACE ON is not supported here, at offset 16"),
        ("INSERT INTO t AS x REPLACE ON x.a = 1 (SELECT 1) s", "REPLACE ON is not supported here, at offset 19"),
        ("INSERT INTO t REPLACE USING a SELECT 1", "is expected"),
        ("INSERT INTO t REPLACE USING () SELECT 1", "a name is expected"),
        ("INSERT INTO t PARTITION (p = 1) REPLACE USING (p) SELECT 1", "a query or VALUES is expected"),
        ("INSERT INTO t WITH (mergeSchema = true) SELECT 1", "WITH options is not supported here, at offset 14"),
        ("INSERT INTO t x y REPLACE USING (a) SELECT 1", "a query or VALUES is expected, 'x' is found"),
        ("INSERT OVERWRITE t REPLACE USING (a) SELECT 1", "a query or VALUES is expected"),
        ("UPDATE t x SET s.a = 1, s.`A` = 2", "the column '`s`.`A`' is set twice"),
        ("MERGE INTO t USING s ON a = b WHEN MATCHED THEN UPDATE SET a = 1, A = 2", "the column 'A' is set twice"),
        ("MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT (a, A) VALUES (1, 2)", "is given twice: a, A"),
        ("INSERT INTO t (a, s.b) SELECT 1, 2", "is expected, '.' is found"),
        ("MERGE INTO t USING s ON a = b WHEN MATCHED THEN DROP", "INSERT is expected"),
        ("MERGE INTO t USING s ON a = b WHEN MATCHED THEN INSERT *", "UPDATE or DELETE is expected"),
        ("MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN DELETE", "INSERT is expected"),
        ("MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)", "1 values are expected"),
        ("FSCK t", "REPAIR is expected"),
        ("FSCK REPAIR TABLE t DRY", "RUN is expected"),
        ("FSCK REPAIR TABLE t METADATA ONLY", "has no other mode here, at offset 20"),
        ("FSCK REPAIR TABLE t VERIFY ALL FILES", "`mica check` reads all files"),
        ("VACUUM t RETAIN many HOURS", "a number is expected"),
        ("VACUUM t RETAIN nan HOURS", "a number is expected"),
        ("VACUUM t LITE FULL", "the end is expected"),
        ("VACUUM t LITE LITE", "the end is expected"),
        ("VACUUM t USING INVENTORY (SELECT 1 AS path)", "USING INVENTORY is not supported here, at offset 9"),
        ("VACUUM t RETAIN 1 HOURS USING INVENTORY s", "VACUUM lists the table's folder itself"),
        ("DESCRIBE HISTORY t LIMIT 1.5", "a whole number is expected"),
        ("DESC HISTORY t LIMIT inf", "a whole number is expected"),
        ("DELETE FROM t WHERE", "an expression is expected"),
    ],
)
def test_what_is_wrong_names_its_place(text: str, why: str) -> None:
    with pytest.raises(mica.UserError, match=why):
        parse_statement(text)


@pytest.mark.parametrize(
    ("query", "filled"),
    [
        ("VALUES (DEFAULT, 1), (f(1, 2), default)", "VALUES (A, 1), (f(1, 2), B)"),
        ("values DEFAULT, ('DEFAULT'), x", "values A, ('DEFAULT'), x"),
        ("VALUES (`DEFAULT`, f(DEFAULT), DEFAULT)", "VALUES (`DEFAULT`, f(DEFAULT), DEFAULT)"),
        ("SELECT DEFAULT", "SELECT DEFAULT"),
        ("select f(1, DEFAULT), default where 1", "select f(1, DEFAULT), B where 1"),
        ("SELECT DEFAULT , DEFAULT FROM t", "SELECT A , B FROM t"),
        ("SELECT DEFAULT /* a, b */, -- it\nDEFAULT", "SELECT A /* a, b */, -- it\nB"),
        ("((SELECT DEFAULT, 1))", "((SELECT A, 1))"),
        ("SELECT *, x, DEFAULT", "SELECT *, x, DEFAULT"),
        ("SELECT `DEFAULT`, DEFAULT + 1", "SELECT `DEFAULT`, DEFAULT + 1"),
        ("TABLE x", "TABLE x"),
        ("SELECT 1 AS DEFAULT, x DEFAULT", "SELECT 1 AS DEFAULT, x DEFAULT"),
    ],
)
def test_default_stands_for_the_text_of_its_column(query: str, filled: str) -> None:
    assert with_defaults(query, ["A", "B"]) == filled


def test_a_long_name_may_precede_columns() -> None:
    update = parse_statement(
        "UPDATE shop.`t` SET shop.t.a = Shop.t.b + u.shop.t.c, a2 = `shop`.t.s.x WHERE SHOP.t.a > t.b"
    )
    assert update == Update(("shop", "t"), "t", {"`t`.`a`": "t.b + u.shop.t.c", "a2": "t.s.x"}, "t.a > t.b")
    merge = parse_statement(
        "MERGE INTO delta.`/a b` USING shop.s ON delta.`/a b`.id = shop.s.id "
        "WHEN MATCHED THEN UPDATE SET delta.`/a b`.n = shop.s.n "
        "WHEN NOT MATCHED THEN INSERT (delta.`/a b`.n) VALUES (1)"
    )
    assert isinstance(merge, MergeInto)
    assert (merge.on, merge.alias, merge.source_alias) == ("`/a b`.id = s.id", "/a b", "s")
    assert [clause.values for clause in merge.clauses] == [{"`/a b`.`n`": "s.n"}, {"`/a b`.`n`": "1"}]
    aliased = parse_statement("DELETE FROM shop.t x WHERE shop.t.a = x.a")
    assert aliased == Delete(("shop", "t"), "x", "shop.t.a = x.a")


def test_an_alias_hides_the_name_of_its_table() -> None:
    assert parse_statement("DELETE FROM t AS u WHERE t.id = u.id") == Delete(("t",), "u", "t.id = u.id")
    update = parse_statement("UPDATE t u SET t.x = 1, u.y = t.z")
    assert update == Update(("t",), "u", {"`t`.`x`": "1", "`u`.`y`": "t.z"}, None)


SCHEMA = parse_ddl("id INT, t STRUCT<z: INT, x: INT>, z INT, `a b` INT, `c.d` INT, s STRUCT<`a.b`: INT, t: INT>")


@pytest.mark.parametrize(
    ("text", "values", "where"),
    [
        ("UPDATE t SET t.t.z = T.z, z = v:t.z::int + t.x WHERE `t`.z = t.t.x",
         {"`t`.`z`": "z", "z": "v:t.z::int + t.x"}, "z = t.x"),
        ("UPDATE x AS t SET t.x = 1 WHERE t.x = 1", {"`t`.`x`": "1"}, "t.x = 1"),
        ("UPDATE u x SET x.s.`a.b` = x.`a b`, x.`c.d` = x.s.t WHERE x._metadata.file_name = x.y",
         {"`s`.`a.b`": "`a b`", "`c.d`": "s.t"}, "_metadata.file_name = y"),
        ("UPDATE t SET id = t._metadata.row_id", {"id": "_metadata.row_id"}, None),
        ("UPDATE u x SET id = x.z + (SELECT max(x.z) FROM u x WHERE (x.z) > 0) + x.id",
         {"id": "z + (SELECT max(x.z) FROM u x WHERE (x.z) > 0) + id"}, None),
        ("UPDATE delta.`/a b` SET delta.`/a b`.id = delta.`/a b`.z", {"id": "z"}, None),
        ("UPDATE t AS u SET t.x = u.t.z", {"`t`.`x`": "t.z"}, None),
        # The variable of a lambda function hides the table's name.
        ("UPDATE u x SET id = f(x.s, (a, `X`) -> a[x.z, x] + X.z, a -> x.z) + x.z WHERE g(x.s, x -> h(x.z)) = x.z",
         {"id": "f(s, (a, `X`) -> a[x.z, x] + X.z, a -> z) + z"}, "g(s, x -> h(x.z)) = z"),
    ],
)  # fmt: skip
def test_the_tables_name_is_left_out_before_its_columns(text: str, values: dict[str, str], where: str | None) -> None:
    update = parse_statement(text)
    assert isinstance(update, Update)
    found = of_columns(update, SCHEMA)
    assert found == Update(update.table, update.name, values, where)
    if where is not None:
        assert of_columns(Delete(update.table, update.name, update.where), SCHEMA).where == where
        insert = parse_statement(f"INSERT INTO {update.name} REPLACE WHERE {update.where} SELECT 1")
        assert isinstance(insert, Insert)
        assert of_columns(insert, SCHEMA).where == where


def test_an_update_takes_time_in_proportion_to_its_columns() -> None:
    """8 times the columns take 8 times as long, 64 times if each looked through all of them."""

    def best(columns: int) -> float:
        schema = parse_ddl(", ".join(f"c{n} INT" for n in range(columns)))
        update = parse_statement("UPDATE t SET " + ", ".join(f"t.c{n} = t.c{n} + 1" for n in range(columns)))
        assert isinstance(update, Update)
        taken = []
        for _ in range(3):
            began = time.process_time()
            of_columns(update, schema)
            taken.append(time.process_time() - began)
        return min(taken)

    ratios = [best(2000) / best(250) for _ in range(2)]
    assert min(ratios) <= 24, ratios


def test_a_column_with_and_without_the_tables_name_is_one() -> None:
    update = parse_statement("UPDATE t x SET x.s.t = 1, s.T = 2")
    assert isinstance(update, Update)
    with pytest.raises(mica.UserError, match=r"the column '`s`.`T`' is set twice"):
        of_columns(update, SCHEMA)


def test_fields_and_keys_are_no_words() -> None:
    text = "UPDATE t SET a = v:case::int + v:where.end, b = s.when WHERE v:set = s.`where`"
    found = Update(("t",), "t", {"a": "v:case::int + v:where.end", "b": "s.when"}, "v:set = s.`where`")
    assert parse_statement(text) == found
    merge = parse_statement("MERGE INTO t USING s ON t.v:when::int = s.k WHEN MATCHED THEN DELETE")
    assert isinstance(merge, MergeInto)
    assert merge.on == "t.v:when::int = s.k"


def test_names_in_a_query_stay_as_they_are() -> None:
    text = "UPDATE t x SET a = x.b + (SELECT max(x.c) FROM u x WHERE (x.d) > 0) + x.e"
    set_ = {"a": "x.b + (SELECT max(x.c) FROM u x WHERE (x.d) > 0) + x.e"}
    assert parse_statement(text) == Update(("t",), "x", set_, None)


@pytest.mark.parametrize("query", ["WITH r AS (SELECT 2) TABLE r", " /* x */\nwith r AS (SELECT 2) TABLE r"])
def test_a_query_behind_a_with_may_have_one_of_its_own(query: str) -> None:
    assert behind("WITH q AS (SELECT 1) ", query) == f"WITH q AS (SELECT 1) SELECT * FROM ({query})"
    assert behind("WITH q AS (SELECT 1) ", "SELECT withheld") == "WITH q AS (SELECT 1) SELECT withheld"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t (a INT) USING mica PARTITIONED BY (b DATE COMMENT 'x', `c d` STRING)",
         {"ddl": "a INT, b DATE COMMENT 'x', `c d` STRING", "partition_by": ("b", "c d")}),
        ("t (a INT, b INT) USING mica PARTITIONED BY (b, a)", {"ddl": "a INT, b INT", "partition_by": ("b", "a")}),
        ("t (a INT) USING mica OPTIONS (path '/p', delta.appendOnly = true) TBLPROPERTIES ('x' = 'y')",
         {"ddl": "a INT", "location": "/p", "properties": {"delta.appendOnly": "true", "x": "y"}}),
        ("t (a INT) USING mica OPTIONS (PATH '/p')", {"ddl": "a INT", "location": "/p"}),
        ("t USING mica OPTIONS (path '/p', 'delta.appendOnly' 'true') COMMENT 'c' AS SELECT 1",
         {"ddl": "", "location": "/p", "properties": {"delta.appendOnly": "true", "comment": "c"},
          "query": "SELECT 1"}),
    ],
)  # fmt: skip
def test_partitions_may_have_types_and_options_are_properties(text: str, expected: dict[str, Any]) -> None:
    found = parse_statement(f"CREATE TABLE {text}")
    assert found == Create(("t",), mode="error", **expected)


def test_options_without_columns_and_query_are_a_name_in_spark_s_catalog() -> None:
    assert parse_statement("CREATE TABLE t USING mica OPTIONS (path '/p', typedPaths 'a INT')") is None
    with pytest.raises(mica.UserError, match="others are TBLPROPERTIES"):
        parse_statement("CREATE TABLE t USING mica OPTIONS (k 'v') AS SELECT 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t LIKE s.u", CreateLike(("t",), ("s", "u"), "error")),
        ("IF NOT EXISTS delta.`/t` LIKE u USING delta TBLPROPERTIES (a = 'b') LOCATION '/p'",
         CreateLike(("delta", "/t"), ("u",), "ignore", "/p", {"a": "b"})),
        ("t LIKE u USING mica", CreateLike(("t",), ("u",), "error", ours=True)),
        ("t LIKE u USING parquet", None),
        ("t LIKE u STORED AS ORC", None),
        ("t (a STRING) USING csv AS SELECT 1 WHERE 'a' LIKE 'b'", Selected),
    ],
)  # fmt: skip
def test_a_table_is_made_like_another(text: str, expected: Any) -> None:
    found = parse_statement(f"CREATE TABLE {text}")
    assert isinstance(found, Selected) if expected is Selected else found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("REORG TABLE t APPLY (PURGE)", Optimize(("t",), None, (), purge=True)),
        ("reorg table delta.`/p` where day = '2026-01-01' apply (purge);",
         Optimize(("delta", "/p"), "day = '2026-01-01'", (), purge=True)),
    ],
)  # fmt: skip
def test_a_purge_is_an_optimize(text: str, expected: Optimize) -> None:
    assert parse_statement(text) == expected


def test_metadata_of_other_formats_is_refused() -> None:
    with pytest.raises(mica.UserError, match="PURGE is expected"):
        parse_statement("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ev", ("ev",)), ("`a.b`", ("a.b",)), (" delta.`/x y` ", ("delta", "/x y")), ("", None), ("ev;", None),
        ("ev@v1", None), ("ev UNION ALL TABLE ev", None), ("ev VERSION AS OF 1", None), ("range(3)", None),
    ],
)  # fmt: skip
def test_a_name_is_a_name_and_nothing_more(text: str, parts: tuple[str, ...] | None) -> None:
    assert name_parts(text) == parts
