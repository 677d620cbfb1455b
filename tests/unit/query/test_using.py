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
    ("CREATE TABLE a LIKE b USING delta", "CREATE TABLE a LIKE b USING mica"),
])  # fmt: skip
def test_a_table_of_delta_is_one_of_mica(text: str, made: str) -> None:
    assert using_mica(text) == made


@pytest.mark.parametrize("text", [
    "CREATE TABLE a AS SELECT * FROM x USING delta",
    "CREATE TABLE a USING parquet AS SELECT delta FROM b USING delta",
    "CREATE TABLE a (s STRING COMMENT 'USING delta') USING parquet",
    "CREATE TEMPORARY VIEW a USING delta",
    "CREATE TABLE a ( USING delta",
    "CREATE TABLE a (s STRING COMMENT 'USING delta",
    "SELECT 'CREATE TABLE a USING delta'",
])  # fmt: skip
def test_no_other_word_changes(text: str) -> None:
    assert using_mica(text) == text
