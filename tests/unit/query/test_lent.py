"""Which names a text may mean that Spark runs."""

from __future__ import annotations

import pytest

from mica.query.lent import _COMPUTED


@pytest.mark.parametrize(
    ("text", "computed"),
    [
        ("SELECT * FROM IDENTIFIER('a')", False), ("identifier ( 'a' )", False), ("SELECT my_identifier", False),
        ("IDENTIFIER(n)", True), ("IDENTIFIER('a' || 'b')", True), ("IDENTIFIER('a'), IDENTIFIER(n)", True),
        ("IDENTIFIER /* a name */ (n)", True), ("EXECUTE IMMEDIATE 'TABLE IDENTIFIER(:n)'", True),
    ],
)  # fmt: skip
def test_a_computed_name(text: str, computed: bool) -> None:
    assert (_COMPUTED.search(text) is not None) == computed


@pytest.mark.timeout(10)  # to the end of the text from each place would take minutes
@pytest.mark.parametrize("part", ["IDENTIFIER /*+ ", "IDENTIFIER(' ", "IDENTIFIER('' ", 'IDENTIFIER("', "IDENTIFIER("])
def test_what_never_ends_is_looked_at_once(part: str) -> None:
    assert len(_COMPUTED.findall(part * 20_000)) > 1
