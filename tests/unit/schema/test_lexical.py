"""Comments and strings end where Spark ends them, and every text is read in a time that grows as the text does: also
one that never ends."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

import mica
from mica.query import fed, names, parameters, settings, statement_parts, statements, tables
from mica.schema import ddl
from mica.schema.lexical import COMMENT, QUOTED_NAME, QUOTED_STRING, RAW_STRING, SKIPPED


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("-- a \\ b\nz", "-- a \\ b"),
        ("-- a \\\n OR x\nz", "-- a \\\n OR x"),
        ("/* a /* b */ c */ z", "/* a /* b */ c */"),
        ("/* ** / **/ z", "/* ** / **/"),
        ("/*/ */ z", "/*/ */"),
        ("/* /*+ h */ z", "/* /*+ h */"),
    ],
)
def test_a_comment_ends_where_spark_ends_it(text: str, comment: str) -> None:
    for pattern in (COMMENT, SKIPPED):
        found = re.match(pattern, text)
        assert found is not None
        assert found[0] == comment


def test_a_hint_is_skipped_and_no_comment() -> None:
    assert re.match(COMMENT, "/*+ MAPJOIN(t) */ z") is None
    assert re.fullmatch(SKIPPED, "/*+ MAPJOIN(t) */")


@pytest.mark.parametrize("part", ["-- a\\\n", "-", "/* a */", "/*", "/* * / ", "--\\", "/*/", "--\n"])
def test_no_text_is_read_twice(part: str) -> None:
    text, start = part * 20_000 + "\nz", time.process_time()
    for pattern in (tables._QUERY, statements._BEGINS):
        assert pattern.match(text) is None
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("pattern", "text", "end"),
    [
        (QUOTED_STRING, "'a''b' 'c'", 6),
        (QUOTED_STRING, r"'a\'b' 'c'", 6),
        (QUOTED_STRING, "'''", 2),
        (QUOTED_STRING, "'a\n--'", 6),
        (QUOTED_STRING, '"a""b\'c" x', 8),
        (RAW_STRING, r"r'a\' 'b'", 5),
        (RAW_STRING, 'R"a\'b" x', 6),
        (QUOTED_NAME, "`a``b'c` x", 8),
    ],
)
def test_a_string_or_name_ends_where_spark_ends_it(pattern: str, text: str, end: int) -> None:
    found = re.match(pattern, text)
    assert found is not None
    assert found.end() == end


def test_a_word_that_ends_with_r_begins_no_raw_string() -> None:
    assert re.search(RAW_STRING, r"char'a\'b'") is None


def test_strings_in_a_row_are_read_once() -> None:
    assert re.fullmatch(rf"(?:{QUOTED_STRING})*x", "'" * 10_000) is None


@pytest.mark.parametrize("part", [r"\'", r"\"", "it\\'s ", "`", "/*+ a ", "r'\\"])
@pytest.mark.parametrize(
    "pattern",
    [settings._NO_WORD, statement_parts._PART, parameters._PART, names.LEXED, fed._CALL, ddl._TOKEN],
    ids=["settings", "parts", "parameters", "names", "fed", "ddl"],
)
def test_what_never_ends_is_read_once(pattern: re.Pattern[str], part: str) -> None:
    text, start = "'" * part.startswith("it") + part * 20_000, time.process_time()
    assert sum(len(found[0]) for found in pattern.finditer(text)) > 0
    assert time.process_time() - start < 2


@pytest.mark.parametrize("inside", [":1a" * 2_000, ":1" * 20_000 + "'"])
def test_a_literal_of_a_time_is_read_once(inside: str) -> None:
    text, start = f"timestamp '{inside}", time.process_time()
    assert settings._ZONED.sub("", text) == text
    assert time.process_time() - start < 2


def test_the_rest_begins_where_nothing_ends() -> None:
    assert [found[0] for found in statement_parts._PART.finditer("a 'b' /*+ c */ 'it\\'s ")] == [
        "a", " ", "'b'", " /*+ c */ ", "'it\\'s ",
    ]  # fmt: skip
    assert settings._NO_WORD.sub(settings._emptied, "a /* b */ 'c' `d` 'it\\'s * 2") == "a   '' ``  "


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 misses matches of such a pattern; single characters and classes are fine."""
    possessive = re.compile(r"(?<![\\(])[)}](?:[*+?]|\{[0-9,]+\})\+(?![\s=])")
    sources = Path(mica.__file__).parent.rglob("*.py")
    found = {(f.name, part[0]) for f in sources for part in possessive.finditer(f.read_text(encoding="utf-8"))}
    assert found == set()
