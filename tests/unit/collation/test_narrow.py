"""The sieve keeps the least and the greatest, and little else."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from mica.collation.narrow import Signs, changed, narrowed

ORDER = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"


def key(text: str) -> list[int]:
    """The primary weights of printable ASCII where nothing is tailored: an oracle of a few lines."""
    return [ORDER.index(char) for char in text.lower()]


def left(texts: list[str], name: str = "UNICODE_CI", version: str = "78.3") -> set[str]:
    found = narrowed(pa.array(texts, pa.string()), name, version).to_pylist()
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize("prefix", ["", "user-", "https://example.org/a/b/c?d="])
def test_the_ends_stay_and_little_else(rng: random.Random, prefix: str) -> None:
    for _ in range(50):
        texts = [
            prefix + "".join(rng.choices(ORDER + "ABCXYZ", k=rng.randint(0, 20))) for _ in range(rng.randint(1, 300))
        ]
        ends = {tuple(min(map(key, texts))), tuple(max(map(key, texts)))}
        found = left(texts)
        assert ends <= {tuple(key(text)) for text in found}
        # Those of the same weights stay together: only the comparator knows which is less.
        assert {text for text in texts if tuple(key(text)) in ends} <= found
        assert len(found) <= 16 + 2 * 16 + len({text for text in texts if tuple(key(text)) in ends})


def test_many_strings_leave_few() -> None:
    texts = [f"https://example.org/{n % 7}/{n:08}" for n in range(20_000)]
    found = left(texts)
    assert {min(texts), max(texts)} <= found
    assert len(found) <= 64


@pytest.mark.parametrize(
    ("texts", "stay"),
    [
        # What is behind an accented letter, and the letter before it, may be anything.
        (["b", "bé", "cé", "d"], {"b", "bé", "cé", "d"}),
        (["aa", "bé", "cé", "dd"], {"aa", "bé", "cé", "dd"}),
        (["aa", "bxé", "cxé", "dd"], {"aa", "dd"}),
        (["a", "A", "á", "b", "B"], {"a", "A", "á", "b", "B"}),
        (["", "a", "b", "z", "\t"], {"", "a", "z", "\t"}),
    ],
)
def test_what_is_not_certain_stays(texts: list[str], stay: set[str]) -> None:
    assert left(texts) == stay


def test_letters_that_join_are_not_certain() -> None:
    assert changed("cs") == "Cc"
    assert left(["ca", "ch", "cz", "d", "a"], "UNICODE") == {"a", "d"}
    assert left(["ca", "ch", "cz", "d", "a"], "cs") == {"a", "d", "ca", "ch", "cz"}
    # What stands before them is: no join begins there.
    assert left(["ba", "bch", "xch", "za"], "cs_CI_AI") == {"ba", "bch", "za"}


def test_blanks_at_the_end_are_trimmed_where_the_collation_trims() -> None:
    assert left(["a   ", "a!", "b"], "UNICODE") == {"a   ", "b"}
    assert left(["a   ", "a!", "b"], "UNICODE_RTRIM") == {"a   ", "a!", "b"}
    assert left(["a ", "a\x01", "b"], "UTF8_BINARY_RTRIM") == {"a ", "b"}
    assert left(["a\x01", "a ", "A", "B "], "UTF8_LCASE_RTRIM") <= {"a ", "A", "B "}


def test_of_another_version_nothing_is_known() -> None:
    texts = ["a", "b", "c", "b"]
    assert left(texts, version="77.1") == {"a", "b", "c"}
    assert left(texts, "UTF8_LCASE", "77.1") == {"a", "b", "c"}
    assert left(texts, "UTF8_BINARY_RTRIM", "77.1") == {"a", "c"}


def test_slices_and_nothing() -> None:
    strings = pa.array(["zz", "b", "a", "c", "aa"])
    assert set(narrowed(strings.slice(1, 3), "UNICODE", "78.3").to_pylist()) == {"a", "c"}
    assert narrowed(strings.slice(1, 0), "UNICODE", "78.3").to_pylist() == []
    assert left(["", ""]) == {""}


def test_letters_beyond_ascii_are_certain_where_nothing_moves_them() -> None:
    texts = [f"{first}{second}x" for first in "aéñzαжかジ" for second in "aüя"]
    assert left(texts) == {"aax", "ジяx", "かяx"} - {"かяx"}
    assert left(texts, "sv") > {"aax", "ジяx"}


def test_signs_are_told_where_they_are_certain() -> None:
    strings = pa.array(["abc", None, "abd", "äb", "жук", "ß", "abc"])
    assert Signs(strings, "UNICODE_CI", "78.3").to("ABCD").to_pylist() == [None, None, 1, None, 1, None, None]
    assert Signs(strings, "UNICODE_CI", "78.3").to("b").to_pylist() == [-1, None, -1, -1, 1, None, -1]
    assert Signs(strings, "UNICODE_CI", "77.1").to("b").null_count == len(strings)
    assert Signs(strings, "UTF8_LCASE", "78.3").to("ABC").to_pylist() == [0, None, 1, 1, 1, 1, 0]
