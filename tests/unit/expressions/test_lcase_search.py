"""LIKE and its relatives by UTF8_LCASE, without Spark; beside Spark they are in `tests/spark/test_collations.py`."""

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind
from mica.expressions.evaluate import filter_rows
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl("s STRING COLLATE UTF8_LCASE")
WORDS = pa.array(["Abc", "xABC", "\u0130x", "i\u0307x", "\u017f", "\u212a", "\u03a3a", None, "%a"])
#: A letter that `s` matches in Java's patterns, but not by the collation.
LONG = pa.array(["x\u017f", "\u017f\u017f"])


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("startswith(s, 'aB')", "100000000"), ("endswith(s, 'bC')", "110000000"), ("contains(s, 'B')", "110000000"),
        ("contains(s, '')", "111111101"), ("startswith(s, 'ς')", "000000100"), ("contains(s, NULL)", "000000000"),
        # What is found begins and ends with whole characters.
        ("startswith(s, 'I')", "000100000"), ("startswith(s, 'i\u0307')", "001100000"),
        ("contains(s, '\u0307x')", "000100000"), ("endswith(s, 'i\u0307X')", "001100000"),
        ("startswith(s, s)", "111111101"), ("startswith(s, left(s, 1))", "111111101"),
        # The optimizer makes comparisons by the collation of these ...
        ("s LIKE 'S'", "000000000"), ("s LIKE 'k'", "000001000"), ("s LIKE 'σ%'", "000000100"),
        ("s LIKE 'a%C'", "100000000"), ("s LIKE '%B%'", "110000000"), ("s NOT LIKE '%bc'", "001111101"),
        ("s LIKE 'abc%abc'", "000000000"), ("s LIKE NULL", "000000000"), ("s LIKE ''", "000000000"),
        # ... and Java's patterns have these.
        ("s LIKE 'S%%'", "000000000"), ("s LIKE '%s%s'", "000000000"), ("s LIKE '%%_S'", "000000000"),
        ("s LIKE '%S%_%%'", "000000000"), ("s LIKE '%A_C%'", "110000000"),
        ("s LIKE '_a'", "000000101"), ("s LIKE 'i_'", "001000000"),
        ("s LIKE '\\\\%A'", "000000001"), ("s LIKE '!%A' ESCAPE '!'", "000000001"),
        ("s LIKE 'S%%_'", "000000000"), ("s LIKE '_'", "000011000"),
        ("s ILIKE 'AB_'", "100000000"), ("s LIKE ANY ('A_C', '%x')", "101100000"),
    ],
)  # fmt: skip
def test_searches_are_sparks(where: str, rows: str) -> None:
    bound = bind(where, SCHEMA)
    assert "".join("01"[hit] for hit in filter_rows(bound, [WORDS for _ in bound.leaves]).to_pylist()) == rows


def test_patterns_that_stay_fold_case_as_java_does() -> None:
    for where, rows in {"s LIKE '_s'": "11", "s LIKE 's%_'": "01", "s LIKE '%s%s'": "01", "s LIKE '%s'": "00"}.items():
        assert "".join("01"[hit] for hit in filter_rows(bind(where, SCHEMA), [LONG]).to_pylist()) == rows


@pytest.mark.parametrize("where", ["s LIKE '_σ'", "s LIKE s"])
def test_letters_that_depend_on_java_need_spark(where: str) -> None:
    bound = bind(where, SCHEMA)
    with pytest.raises(UserError) as raised:
        filter_rows(bound, [WORDS for _ in bound.leaves])
    assert raised.value.code == "NEEDS_SPARK"


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(UserError, match="ends with the escape character"):
        filter_rows(bind("s LIKE 'ax' ESCAPE 'x'", SCHEMA), [WORDS])
