"""Statements that alter, restore or describe a table, as values."""

from __future__ import annotations

from typing import Any

import pytest

from mica.query.statements import parse_statement
from mica.query.table_statements import ConvertToDelta, Drop, LetGo, Question, Relocate, Rename, TableCall, Unread

P = ("delta", "/data/t")


@pytest.mark.parametrize(
    ("text", "method", "arguments"),
    [
        ("ADD COLUMN x INT", "add_columns", {"columns": "x INT"}),
        ("add columns (x INT, `y z` STRING COMMENT 'q, (r')", "add_columns",
         {"columns": "x INT, `y z` STRING COMMENT 'q, (r'"}),
        ("ADD COLUMNS (x STRUCT<a: INT, b: ARRAY<INT>> FIRST)", "add_columns",
         {"columns": "x STRUCT<a: INT, b: ARRAY<INT>> FIRST"}),
        ("ADD COLUMN s.`x.y`.z INT AFTER `w v`", "add_columns", {"columns": "s.`x.y`.z INT AFTER `w v`"}),
        ("ADD COLUMNS (a INT FIRST, s.b INT AFTER a COMMENT 'q')", "add_columns",
         {"columns": "a INT FIRST, s.b INT AFTER a COMMENT 'q'"}),
        ("ADD COLUMNS (first INT, after STRUCT<first INT, after: DECIMAL(3,1)>)", "add_columns",
         {"columns": "first INT, after STRUCT<first INT, after: DECIMAL(3,1)>"}),
        ("ADD COLUMN after.c INT FIRST", "add_columns", {"columns": "after.c INT FIRST"}),
        ("DEFAULT COLLATION unicode_ci", "set_properties", {"properties": {"collation": "UNICODE_CI"}}),
        ("DROP COLUMN s.x", "drop_columns", {"columns": ["s.x"], "if_exists": False}),
        ("DROP COLUMNS (a, `b c`)", "drop_columns", {"columns": ["a", "`b c`"], "if_exists": False}),
        ("DROP COLUMN IF EXISTS a, s.x", "drop_columns", {"columns": ["a", "s.x"], "if_exists": True}),
        ("RENAME COLUMN s.a TO `b c`", "rename_column", {"column": "s.a", "name": "b c"}),
        ("ALTER COLUMN n TYPE BIGINT -- more", "alter_column", {"column": "n", "type": "BIGINT"}),
        ("ALTER n SET NOT NULL", "alter_column", {"column": "n", "nullable": False}),
        ("ALTER COLUMN n DROP NOT NULL", "alter_column", {"column": "n", "nullable": True}),
        ("CHANGE COLUMN n COMMENT 'it''s'", "alter_column", {"column": "n", "comment": "it's"}),
        ("ALTER COLUMN n SET DEFAULT 1 + 2", "alter_column", {"column": "n", "default": "1 + 2"}),
        ("ALTER COLUMN n DROP DEFAULT", "alter_column", {"column": "n", "default": ""}),
        ("ALTER COLUMN `n m` SYNC IDENTITY", "sync_identity", {"column": "`n m`"}),
        ("CHANGE n AFTER m", "alter_column", {"column": "n", "after": "m"}),
        ("CHANGE n AFTER `m.k`", "alter_column", {"column": "n", "after": "`m.k`"}),
        ("ALTER COLUMN n TYPE STRUCT<a: DECIMAL(3,1), b: INT>", "alter_column",
         {"column": "n", "type": "STRUCT<a: DECIMAL(3,1), b: INT>"}),
        ("ALTER COLUMN n FIRST", "alter_column", {"column": "n", "first": True}),
        ("ALTER COLUMN n COMMENT 'a, b', s.`m n` TYPE DECIMAL(3,1), q AFTER n", "alter_columns",
         {"changes": {"n": {"comment": "a, b"}, "s.`m n`": {"type": "DECIMAL(3,1)"}, "q": {"after": "n"}}}),
        ("CHANGE COLUMN n n BIGINT", "alter_column", {"column": "n", "type": "BIGINT"}),
        ("CHANGE s.`n m` `N m` DECIMAL(3,1) COMMENT 'c' AFTER q", "alter_column",
         {"column": "s.`n m`", "type": "DECIMAL(3,1)", "comment": "c", "after": "q"}),
        ("CHANGE COLUMN type type STRUCT<a: INT> FIRST", "alter_column",
         {"column": "type", "type": "STRUCT<a: INT>", "first": True}),
        ("SET TBLPROPERTIES ('a' 'b', delta.appendOnly = TRUE)", "set_properties",
         {"properties": {"a": "b", "delta.appendOnly": "true"}}),
        ("UNSET TBLPROPERTIES IF EXISTS ('a', b.c)", "set_properties", {"properties": {"a": None, "b.c": None}}),
        ("ADD CONSTRAINT c CHECK (n > 0 AND (m < 1))", "add_constraint", {"name": "c", "expr": "n > 0 AND (m < 1)"}),
        ("DROP CONSTRAINT IF EXISTS c", "drop_constraint", {"name": "c", "if_exists": True}),
        ("DROP FEATURE deletionVectors TRUNCATE HISTORY", "drop_feature",
         {"name": "deletionVectors", "truncate_history": True}),
        ("DROP FEATURE 'variantShredding'", "drop_feature", {"name": "variantShredding", "truncate_history": False}),
    ],
)  # fmt: skip
def test_an_alteration_is_one_call(text: str, method: str, arguments: dict[str, Any]) -> None:
    assert parse_statement(f"-- a comment\nALTER TABLE delta.`/data/t` {text};") == TableCall(P, method, arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RESTORE TABLE delta.`/data/t` TO VERSION AS OF 3", TableCall(P, "restore", {"version": 3})),
        ("RESTORE delta.`/data/t` FOR SYSTEM_VERSION AS OF 3", TableCall(P, "restore", {"version": 3})),
        ("RESTORE delta.`/data/t` TO FOR SYSTEM_TIME AS OF x", TableCall(P, "restore", {"timestamp": "x"})),
        (
            "restore delta.`/data/t` timestamp as of '2026-01-01' -- the last good one",
            TableCall(P, "restore", {"timestamp": "'2026-01-01'"}),
        ),
        ("TRUNCATE TABLE t", TableCall(("t",), "delete")),
        ("COMMENT ON TABLE t IS 'it''s'", TableCall(("t",), "set_properties", {"properties": {"comment": "it's"}})),
        ("comment on table t is null", TableCall(("t",), "set_properties", {"properties": {"comment": None}})),
        ("ALTER TABLE t RENAME TO s.u", Rename(("t",), ("s", "u"))),
        ("DROP TABLE IF EXISTS t PURGE", Drop(("t",))),
        ("drop table s.t", Drop(("s", "t"))),
        ("DESC DETAIL delta.`/data/t`", Question(P, "detail")),
        ("DESCRIBE DETAIL '/data/t'", Question(P, "detail")),
        ("DESCRIBE TABLE EXTENDED t", Question(("t",), "extended")),
        ("DESC FORMATTED delta.`/data/t`;", Question(P, "extended")),
        ("DESCRIBE t a", Question(("t",), "column", "a")),
        ("DESC history", Question(("history",), "columns")),
        ("DESC HISTORY -- of that table\n ;", Question(("HISTORY",), "columns")),
        ("DESC EXTENDED t s.`b c`", Question(("t",), "column", "s.`b c`")),
        ("ALTER TABLE t SET LOCATION '/other'", Relocate(("t",), "/other")),
        (
            "ALTER TABLE t REPLACE COLUMNS (a INT, s STRUCT<b: INT>)",
            TableCall(("t",), "replace_columns", {"columns": "a INT, s STRUCT<b: INT>"}),
        ),
        ("SHOW PARTITIONS t", Question(("t",), "partitions")),
        (
            "SHOW PARTITIONS t PARTITION (p = 1, q = 'a')",
            Question(("t",), "partitions", partition={"p": "1", "q": "'a'"}),
        ),
        ("show create table delta.`/data/t`", Question(P, "statement")),
        ("describe t", Question(("t",), "columns")),
        ("SHOW COLUMNS FROM t", Question(("t",), "names")),
        ("SHOW COLUMNS IN t FROM d", Question(("d", "t"), "names")),
        ("SHOW COLUMNS FROM d.t IN c.D", Question(("d", "t"), "names")),
        ("REFRESH TABLE s.t", LetGo(("s", "t"))),
        ("UNCACHE TABLE IF EXISTS t", LetGo(("t",))),
        ("SHOW TBLPROPERTIES delta.`/data/t`", Question(P, "properties")),
        ("SHOW TBLPROPERTIES t ('delta.appendOnly')", Question(("t",), "properties", "delta.appendOnly")),
        ("CONVERT TO DELTA parquet.`/data/p`", ConvertToDelta("/data/p", None)),
        (
            "CONVERT TO DELTA parquet.`/data/p` NO STATISTICS PARTITIONED BY (day DATE, n INT)",
            ConvertToDelta("/data/p", "day DATE, n INT"),
        ),
    ],
)
def test_other_statements(text: str, expected: object) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t RENAME TO", "ALTER TABLE t ADD PARTITION (p = 1)", "ALTER TABLE t CLUSTER BY AUTO",
        "ALTER TABLE t ALTER COLUMN a TYPE BIGINT, b", "ALTER TABLE t ALTER COLUMN a FIRST, A COMMENT 'x'",
        "ALTER TABLE t ALTER COLUMN a a BIGINT", "ALTER TABLE t CHANGE COLUMN a a BIGINT NOT NULL",
        "ALTER TABLE t DROP COLUMN IF NOT EXISTS a",
        "ALTER TABLE t CHANGE COLUMN a b BIGINT", "ALTER TABLE t SET TBLPROPERTIES ('a')", "DESCRIBE t a b",
        "SHOW CREATE TABLE t AS SERDE", "SHOW PARTITIONS t PARTITION (p)", "DESC t PARTITION (p = 1)",
        "DESCRIBE QUERY SELECT 1", "SHOW COLUMNS IN e.t IN d", "TRUNCATE TABLE t PARTITION (p = 1)",
        "RESTORE TABLE t TO 3", "RESTORE t FOR 3",
        "CONVERT TO DELTA t", "ALTER TABLE", "ALTER TABLE t", "ALTER TABLE t ADD COLUMN",
        "ALTER TABLE t ADD COLUMN ()", "ALTER TABLE t ADD COLUMNS (a INT FIRST AFTER b)", "RESTORE t VERSION AS OF 1.7",
        "RESTORE t VERSION AS OF nan", "DESC ${t}", "ALTER TABLE ${t} ADD COLUMN a INT", "DESC QUERY SELECT ? + 1",
    ],
)  # fmt: skip
def test_what_is_not_one_call_is_left_to_spark(text: str) -> None:
    found = parse_statement(text)
    assert isinstance(found, Unread)
    assert found.error.code in ("INVALID_EXPRESSION", "INVALID_DDL", "DUPLICATE_COLUMN")


def test_the_table_is_the_first_name() -> None:
    found = parse_statement("ALTER TABLE t SET TBLPROPERTIES (mica.x = -1)")
    assert isinstance(found, Unread)
    assert found.table == ("t",)
