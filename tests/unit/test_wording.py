"""Texts for people count as people do."""

from mica.wording import counted, short_path, shortened, sized


def test_one_is_singular_and_thousands_are_separated() -> None:
    assert [counted(n, "row group") for n in (0, 1, 2, 1234)] == [
        "0 row groups", "1 row group", "2 row groups", "1,234 row groups",
    ]  # fmt: skip


def test_few_bytes_are_not_0_megabytes() -> None:
    assert [sized(n) for n in (0, 1, 999, 1_250, 1_000_000, 1_234_500_000)] == [
        "0 bytes", "1 byte", "999 bytes", "1.2 kB", "1.0 MB", "1,234.5 MB",
    ]  # fmt: skip


def test_a_long_text_keeps_both_ends() -> None:
    assert shortened("day=1/part-0123456789.parquet", 15) == "day=1/p…parquet"
    assert [len(shortened("x" * n, 10)) for n in (9, 10, 11, 99)] == [9, 10, 10, 10]


def test_a_long_path_loses_the_extensions_first() -> None:
    assert short_path("day=1/part-0123456789.zstd.parquet", 15) == "day=1/p…3456789"
    assert short_path("events.2024-01-01.parquet", 12) == "event…-01-01"
    assert short_path("a.parquet", 9) == "a.parquet"
