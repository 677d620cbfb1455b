"""Comparisons of codes give what those of the values give, row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.errors import UserError
from mica.expressions import codes
from mica.expressions.bind import bind
from mica.expressions.evaluate import filter_rows
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl("v variant, s string")
TEXTS = st.sampled_from(["", "a", "b", "B", "ab", "é", "\U00010000", "z"])
COMPARED = [
    "v:a::string = 'a'", "'b' < v:a::string", "v:a::string <> 'a'", "v:a::string >= ''", "v:a::string = null",
    "v:a::string in ('a', 'z')", "v:a::string not in ('a', 'b', 'B', 'ab')", "v:a::string in ('a', null)",
    "v:a::string = 'b' collate UTF8_LCASE", "not v:a::string = 'a' or v:a::string = 'z'",
]  # fmt: skip
OTHERS = ["v:a::string <=> 'a'", "v:a::string is null", "v:a::string like 'a%'", "length(v:a::string) > 1"]


@given(st.lists(TEXTS | st.none(), min_size=1, max_size=20), st.sampled_from(COMPARED + OTHERS))
def test_codes_are_judged_as_their_values(texts: list[str | None], where: str) -> None:
    bound, plain, failed = bind(where, SCHEMA), pa.array(texts, pa.string()), pa.array([False] * len(texts))
    expected = filter_rows(bound, [plain, failed] * len(bound.leaves))
    assert filter_rows(bound, [plain.dictionary_encode(), failed] * len(bound.leaves)).equals(expected)


def test_only_comparisons_with_constants_are_evaluated_once_a_value() -> None:
    for where in COMPARED[:8]:
        assert codes.compared(bind(where, SCHEMA).expr) == 0
    assert codes.compared(bind(OTHERS[0], SCHEMA).expr) is None


def test_a_strict_cast_fails_in_the_rows_that_fail() -> None:
    bound = bind("v:a::string = 'a'", SCHEMA)
    values: Any = pa.array(["a", None, "a"]).dictionary_encode()
    with pytest.raises(UserError, match="in row 1 of the batch"):
        filter_rows(bound, [values, pa.array([False, True, False])])


def test_a_dictionary_larger_than_the_rows_is_not_worth_it() -> None:
    values = pa.array(["a", "b", "c"]).dictionary_encode()
    assert codes.worth(values)
    assert not codes.worth(values.slice(0, 2))
    assert not codes.worth(values.dictionary_decode())
