"""Numbers in sentences, with their nouns.

The rule: one thing is named in the singular, every other number of them in the plural.
"""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`, `1,000 rows`; the noun is given in the singular."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
