"""Comments end where Spark ends them, and every text is read in a time that grows as the text does."""

from __future__ import annotations

import re
import time

import pytest

from mica.query import entry, statements
from mica.schema.comments import COMMENT, SKIPPED


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
