"""UTF8_LCASE in process: code points become lower-case ones, and nothing else is looked at."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.collation.lcase import ends, fold, folded


@pytest.mark.parametrize(
    ("text", "as_compared"),
    [("", ""), ("ABC xyz", "abc xyz"), ("ÀÉÎ", "àéî"), ("İstanbul", "i\u0307stanbul"), ("ΣΑΣ ς", "σασ σ"), ("ẞß", "ßß"),
     ("\U00010400", "\U00010428"), ("A\0B", "a\0b"), ("ก่", "ก่"), ("Ⅷ", "ⅷ"), ("\ua7dc", "\u019b")],
)  # fmt: skip
def test_what_becomes_of_a_string(text: str, as_compared: str) -> None:
    assert fold(text) == as_compared


def test_the_ends_of_many() -> None:
    assert ends(pa.array(["b", "Z", "a", "ÄÄ", "A"])).to_pylist() == ["a", "ÄÄ"]
    assert ends(pa.array([], pa.string())).to_pylist() == []
    assert ends(pa.array(["x", "x"]).slice(1)).to_pylist() == ["x", "x"]


@given(st.lists(st.none() | st.text(alphabet="aAİςΣ\U00010400ß\0é", max_size=5)), st.integers(0, 5), st.integers(0, 5))
def test_many_strings_are_each_by_itself(texts: list[str | None], start: int, end: int) -> None:
    part = pa.array(texts, pa.string()).slice(start, max(0, len(texts) - start - end))
    found = folded(part)
    found.validate(full=True)
    assert found.to_pylist() == [None if t is None else fold(t) for t in part.to_pylist()]
