"""Numbers in sentences, with their nouns, and texts that are too long for a line.

The rule: one thing is named in the singular, every other number of them in the plural; what is cut keeps both ends.
"""

from __future__ import annotations

from mica import late


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`, `1,000 rows`; the noun is given in the singular."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sized(size: int) -> str:
    """`0 bytes`, `1.2 kB`, `1,234.5 MB`."""
    if size < 1000:
        return counted(size, "byte")
    return f"{size / 1e3:.1f} kB" if size < 1_000_000 else f"{size / 1e6:,.1f} MB"


def shortened(text: str, most: int) -> str:
    """The text, cut in the middle if it is longer: the ends of paths tell them apart."""
    tail = most // 2
    return text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}"


_EXTENSIONS = late.pattern(r"(\.(zstd|snappy|gz|gzip|lz4|lz4_raw|lzo|brotli))?\.parquet$")


def short_path(path: str, most: int) -> str:
    """The path of a file, cut so if it is longer, without the extensions of Parquet: in a table they are alike."""
    return path if len(path) <= most else shortened(_EXTENSIONS.sub("", path), most)
