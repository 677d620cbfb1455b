"""Texts for people count as people do."""

from mica.wording import counted


def test_one_is_singular_and_thousands_are_separated() -> None:
    assert [counted(n, "row group") for n in (0, 1, 2, 1234)] == [
        "0 row groups", "1 row group", "2 row groups", "1,234 row groups",
    ]  # fmt: skip
