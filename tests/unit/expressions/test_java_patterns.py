"""Java's patterns are written anew for RE2 and Python, or refused by name."""

import pytest

from mica.expressions.java_patterns import JavaPattern
from mica.expressions.tokens import OnlySparkError


@pytest.mark.parametrize(
    ("java", "re2"),
    [
        ("a", r"\x{61}"), ("^a$", r"\A\x{61}\z"), ("[a-c]", r"[\x{61}-\x{63}]"), ("(?i)k", r"[\x{4b}\x{6b}]"),
        ("(a)|b", r"(?:(?:\x{61})|\x{62})"), ("\\d+?", r"(?:[\x{30}-\x{39}])+?"), ("\\Qa.\\E", r"\x{61}\x{2e}"),
        (".", r"[\x{0}-\x{9}\x{b}-\x{c}\x{e}-\x{84}\x{86}-\x{2027}\x{202a}-\x{10ffff}]"),
        ("(?s:.)", r"[\x{0}-\x{10ffff}]"), ("a{2,3}", r"(?:\x{61}){2,3}"),
        ("[^\\x00-\\x{10FFFF}]", r"[^\x{0}-\x{10ffff}]"),
    ],
)  # fmt: skip
def test_is_written_for_re2(java: str, re2: str) -> None:
    assert JavaPattern.read(java).re2() == re2


def test_groups_are_captured_on_demand() -> None:
    found = JavaPattern.read("(a(?<n>b))(?:c)")
    assert found.groups == 2
    assert found.re2(group=2) == r"(?:\x{61}(?P<g2>\x{62}))\x{63}"
    assert found.re2(capture=True) == r"(\x{61}(\x{62}))\x{63}"


@pytest.mark.parametrize(
    ("java", "prefix"),
    [("^ab", ("ab", True)), ("^ab.", ("ab", False)), ("ab", ("", False)), ("^a|b", ("", False)),
     ("(?i)^a", ("", False)), ("^ab*", ("a", False)), ("^", ("", True)), ("^1(?:2)", ("1", False))],
)  # fmt: skip
def test_prefix(java: str, prefix: tuple[str, bool]) -> None:
    assert JavaPattern.read(java).prefix == prefix


@pytest.mark.parametrize(
    ("java", "names"),
    [
        ("a(?=b)", "a group of this kind"), ("\\bword", r"\\b"), ("a++", "possessive"), ("(a*)*", "may be empty"),
        ("[a&&b]", "brackets inside"), ("[]a]", "at the start of brackets"), ("(a", "not closed"), ("a)", "not opened"),
        ("[a", "not closed"), ("a{1001}", "repetitions"), ("\\1", r"\\1"), ("\\p{Lu}", "class of characters"),
        ("(" * 60 + ")" * 60, "nesting"), ("(?m)^", "a group of this kind"), ("[z-a]", "range"),
        ("\\", "cannot be used"),
        ("(?:a{1000}){1000}", "too large"), ("\ud800", "half of a character"),
    ],
)  # fmt: skip
def test_refuses_by_name(java: str, names: str) -> None:
    with pytest.raises(OnlySparkError, match=names):
        JavaPattern.read(java)
