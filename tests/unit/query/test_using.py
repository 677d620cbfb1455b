"""The provider of a table that a text makes."""

from __future__ import annotations

import pytest

from mica.query.using import using_mica


@pytest.mark.parametrize(("text", "made"), [
    ("create table a (id int) using delta", "create table a (id int) using mica"),
    ("CREATE OR REPLACE TABLE a USING DELTA AS SELECT 1", "CREATE OR REPLACE TABLE a USING mica AS SELECT 1"),
    ("/* x */ REPLACE TABLE a /* using delta */ USING delta", "/* x */ REPLACE TABLE a /* using delta */ USING mica"),
    ("CREATE TABLE delta.`/p` (s STRING COMMENT 'USING delta') USING delta",
     "CREATE TABLE delta.`/p` (s STRING COMMENT 'USING delta') USING mica"),
    ("CREATE OR REPLACE TEMP VIEW a USING delta OPTIONS (path '/p')",
     "CREATE OR REPLACE TEMP VIEW a USING mica OPTIONS (path '/p')"),
    ("CREATE TEMPORARY VIEW a USING delta", "CREATE TEMPORARY VIEW a USING mica"),
    ("CREATE TABLE a LIKE b USING delta", "CREATE TABLE a LIKE b USING mica"),
])  # fmt: skip
def test_a_table_of_delta_is_one_of_mica(text: str, made: str) -> None:
    assert using_mica(text) == made


@pytest.mark.parametrize("text", [
    "CREATE TABLE a AS SELECT * FROM x USING delta",
    "CREATE TABLE a USING parquet AS SELECT delta FROM b USING delta",
    "CREATE TABLE a (s STRING COMMENT 'USING delta') USING parquet",
    "CREATE TEMPORARY VIEW a AS SELECT * FROM x JOIN y USING (delta)",
    "CREATE VIEW a AS SELECT * FROM x JOIN delta USING delta",
    "CREATE TABLE a ( USING delta",
    "CREATE TABLE a (s STRING COMMENT 'USING delta",
    "SELECT 'CREATE TABLE a USING delta'",
])  # fmt: skip
def test_no_other_word_changes(text: str) -> None:
    assert using_mica(text) == text


@pytest.mark.parametrize(("text", "made"), [
    ("CREATE TABLE a (id INT)", "CREATE TABLE a (id INT) USING mica"),
    ("CREATE TABLE IF NOT EXISTS s.a (id DECIMAL(5, 2), b INT) PARTITIONED BY (b) COMMENT 'delta'",
     "CREATE TABLE IF NOT EXISTS s.a (id DECIMAL(5, 2), b INT) USING mica PARTITIONED BY (b) COMMENT 'delta'"),
    ("CREATE OR REPLACE TABLE `a b` AS SELECT 1", "CREATE OR REPLACE TABLE `a b` USING mica AS SELECT 1"),
    ("REPLACE TABLE a (SELECT 1)", "REPLACE TABLE a USING mica (SELECT 1)"),
    ("CREATE TABLE IDENTIFIER('a') (id INT)", "CREATE TABLE IDENTIFIER('a') (id INT) USING mica"),
])  # fmt: skip
def test_a_table_without_a_provider_has_the_default(text: str, made: str) -> None:
    """Where spark.sql.sources.default is delta."""
    assert (using_mica(text, lambda: True), using_mica(text)) == (made, text)


@pytest.mark.parametrize("text", [
    "CREATE TABLE a USING parquet AS SELECT 1 AS delta",
    "CREATE TABLE a LIKE b",
    "CREATE TABLE a SHALLOW CLONE b",
    "CREATE TABLE a (id INT) STORED AS orc",
    "CREATE TABLE a (id INT",
    "CREATE TEMPORARY VIEW a AS SELECT 1",
    "CREATE VIEW a AS SELECT 1",
    "CREATE TABLE",
])  # fmt: skip
def test_other_tables_do_not_have_the_default(text: str) -> None:
    assert using_mica(text, lambda: True) == text
