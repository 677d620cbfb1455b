"""What is told of a text that mica does not parse, by its tokens alone."""

from __future__ import annotations

import pytest

from mica.expressions.unparsed import conjuncts, for_spark, gives_texts, has_window, names


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ["a"]),
        ("a = 1 AND exists(x, y -> y AND z) and b", ["a = 1", "exists(x, y -> y AND z)", "b"]),
        ("n BETWEEN 1 AND 2 AND m NOT BETWEEN 3 AND 4", ["n BETWEEN 1 AND 2", "m NOT BETWEEN 3 AND 4"]),
        ("CASE WHEN a AND b THEN c END AND d[1 AND 2]", ["CASE WHEN a AND b THEN c END", "d[1 AND 2]"]),
        ("a AND b OR c", ["a AND b OR c"]),
        ("a AND (b OR c)", ["a", "(b OR c)"]),
        ("s = 'x AND y' AND `a AND b`", ["s = 'x AND y'", "`a AND b`"]),
        ("a AND case", ["a AND case"]),
        ("a AND end", ["a AND end"]),
        ("between AND a AND b", ["between AND a", "b"]),
        ("a AND ? AND b", ["a AND ? AND b"]),
        # Names of columns, of fields and of variables, not words of CASE.
        ("case > 2 OR a AND end < 5 AND b", ["case > 2 OR a AND end < 5 AND b"]),
        ("x.case OR a AND x.end AND b", ["x.case OR a AND x.end AND b"]),
        ("x.end AND b", ["x.end", "b"]),
        ("f(case -> case) OR a AND f(end -> end) AND b", ["f(case -> case) OR a AND f(end -> end) AND b"]),
        ("a) AND (b", ["a) AND (b"]),
    ],
)
def test_conjuncts(text: str, parts: list[str]) -> None:
    assert conjuncts(text) == parts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("soundex(S) = t.`A b```", {"soundex", "s", "t", "a b`"}),
        ("a * b", {"a", "b"}),
        ("hash(*)", None),
        ("hash(1, *)", None),
        ("hash(t.*)", None),
        ("a = ?", None),
    ],
)
def test_names(text: str, found: set[str] | None) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s = STRING'it''s' AND f(s)", "s = CAST('it''s' AS STRING) AND f(s)"),
        ("s IN (STRING'a', STRING'b')", "s IN (CAST('a' AS STRING), CAST('b' AS STRING))"),
        ("s IN (SELECT)", "s IN (SELECT NULL WHERE false)"),
        ("CAST(s AS STRING) = 'STRING''x'", "CAST(s AS STRING) = 'STRING''x'"),
        ("string('x') = s", "string('x') = s"),
        ("a = ?", "a = ?"),
    ],
)
def test_what_only_mica_reads_is_said_in_sparks_words(text: str, said: str) -> None:
    assert for_spark(text) == said
    assert gives_texts(text) is ("CAST('" in said)


@pytest.mark.parametrize(
    ("text", "found"),
    [("rank() over (ORDER BY a)", True), ("over > 1", False), ("'x OVER ('", False), ("`over`(1)", False)],
)
def test_has_window(text: str, found: bool) -> None:
    assert has_window(text) is found
