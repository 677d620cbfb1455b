"""Comments end where Spark ends them, and every text is read in a time that grows as the text does."""

from __future__ import annotations

import re
import time

import pytest

from mica.query import entry, statements
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
    for pattern in (entry._QUERY, statements._BEGINS):
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
