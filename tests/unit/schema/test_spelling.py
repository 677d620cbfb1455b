"""Names and strings in their quotes and out of them; what the strings mean was read from Spark 4.2.1."""

import pytest

from mica.schema import spelling


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'a''b'", "a'b"), ('"a\'\'b"', "a''b"), (r"'a\'b'", "a'b"), (r"'\u0041\101\n\q'", "AA\nq"),
        (r"'\177\200\377'", "\x7f200377"),
        (r"'\ud83d\ude00'", "😀"), (r"'\%\_'", r"\%\_"), ("''", ""),
    ],
)  # fmt: skip
def test_string_literals(literal: str, value: str) -> None:
    assert spelling.unquote(literal) == value


@pytest.mark.parametrize(
    ("name", "bare", "ours"),
    [("a", "a", "a"), ("select", "select", "`select`"), ("1a", "`1a`", "`1a`"), ("x,y", "`x,y`", "`x,y`"),
     ("a`b", "`a``b`", "`a``b`"), ("`", "````", "````"), ("", "``", "``")],
)  # fmt: skip
def test_a_name_is_read_as_it_was_printed(name: str, bare: str, ours: str) -> None:
    assert spelling.as_spark([name, "b"]) == f"{bare}.b"
    assert spelling.spelled([name, "b"]) == f"{ours}.b"
    for text in (bare, ours, spelling.quoted(name)):
        assert spelling.unquoted(text) == name
