"""Whatever text a person gives, the answer is a value or a UserError with a place; never another exception."""

from __future__ import annotations

import contextlib

from hypothesis import example, given
from hypothesis import strategies as st

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.parse import parse
from mica.expressions.tree import to_sql
from mica.schema.ddl import parse_ddl, to_ddl
from mica.stats.named import parse_paths
from mica.variant.path import VariantPath

SCHEMA = parse_ddl(
    "a BIGINT, s STRING, d DATE, t TIMESTAMP, x DOUBLE, n DECIMAL(10,2), b BOOLEAN, v VARIANT, r STRUCT<k: INT>"
)
WORDS = st.sampled_from(
    "a s d t x n b v r.k zz v:a v:a.b[0] v:['c d']::int v:`q`::string ::bigint ::decimal(5,2) ( ) , = <> < <= > >= <=> "
    "!= == ! NOT AND OR IN BETWEEN IS NULL TRUE FALSE UNKNOWN DISTINCT FROM LIKE CASE 1 -1 1.5 1e3 2L 3BD .5 5. "
    "'x' '1' "
    "\"y\" 'it''s' X'1F' DATE'2020-01-01' TIMESTAMP'2020-01-01' CAST AS INT try_cast variant_get '$.a' :: : . [ "
    "] - + * / ` ' "
    "-- /* 99999999999999999999 1Y r'\\' NULL".split()
)
SOUP = st.one_of(
    st.lists(WORDS, max_size=12).map(" ".join), st.lists(WORDS, max_size=8).map("".join), st.text(max_size=30)
)


@given(SOUP, st.booleans())
@example("a IN (1, (2", True)
@example("v:a::struct<", True)
@example("'\\u12'", True)
@example("1e99999999999BD = a", True)
@example("cast(" * 30, True)
def test_predicates(text: str, ansi: bool) -> None:
    with contextlib.suppress(UserError):
        bind_value(text, SCHEMA, ansi=ansi)


@given(SOUP)
def test_what_is_read_can_be_shown_and_read_again(text: str) -> None:
    try:
        shown = to_sql(parse(text))
    except UserError:
        return
    assert "…" in shown or to_sql(parse(shown)) == shown


DDL = st.sampled_from(
    "a b `c d` : , < > ( ) INT BIGINT STRING DECIMAL DECIMAL(5,2) ARRAY<INT> ARRAY< MAP<STRING,INT> "
    "STRUCT<x:INT> STRUCT< "
    "> NOT NULL COMMENT 'x' COLLATE de VARIANT 1 DEFAULT -- /* ` '".split()
)


@given(st.one_of(st.lists(DDL, max_size=12).map(" ".join), st.text(max_size=30)))
def test_schemas(text: str) -> None:
    try:
        schema = parse_ddl(text)
    except UserError:
        return
    if schema.fields:  # the text of no columns at all is no schema, to Spark too
        assert parse_ddl(to_ddl(schema)) == schema


@given(st.one_of(st.text(max_size=20), st.text("$.[]'\"ab0\\ ", max_size=12)))
def test_paths(text: str) -> None:
    for read in (VariantPath.parse, parse_paths):
        with contextlib.suppress(UserError):
            read(text)
