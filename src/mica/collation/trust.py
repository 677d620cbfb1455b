"""How far the order of a collation can be trusted.

The rule: every collation of ICU is trusted at its primary level (letters, whatever their case and accents); which of
two strings of equal letters is less is trusted only where no string of such letters can hold `ß`.

ICU4J 78.3 compares in two ways. Where the strings differ, after what they begin with alike, in characters up to U+017F
and punctuation alone, it takes a short way; else, also where one of `“„…µ·½` stands there, the long one. Both agree on
primary weights, and so does every collation with its own `_CI_AI`, which compares these alone: strings that differ
there are in one order. Of strings whose primary weights are equal the two ways say different things, but only where one
holds `ß`: its weights are s, a mark, s, and the short way takes the mark for one of the first s. So
`aß <= aẞ` (long), `aẞ <= Äss` with a soft hyphen (long), and not `aß <= Äss` (short); without accents `ss` and `ß` are
two strings in the short way and one in the long way. `fr_CAN` compares accents from the end, and characters that are
ignored break its order in the same place, among strings of equal letters.

It follows that a minimum, found by any comparisons, has the least primary weights of all, and that a file may be
skipped where a constant's primary weights lie beyond those of a bound. Where they are equal, the collation itself
decides if no string of these weights can hold `ß`, and nothing does otherwise.

UTF8_LCASE and those that only trim compare bytes of changed strings, which none of this touches.

Source: `RuleBasedCollator.doCompare`, `CollationFastLatin` of ICU4J; measured on Spark 4.2.1 over all 145 bases.
`tests/spark/test_order.py` shows the contradictions and tries the rule, at length in the campaign.
"""

from __future__ import annotations

import unicodedata

from mica.collation.names import base_of

#: Up to here a character of primary weight `s` has an `s` among the letters that it is made of.
_LAST_LATIN = "\u017f"


def by_bytes(name: str) -> bool:
    """Whether a collation (by its SQL name) compares the bytes of changed strings: ICU has no part in it."""
    return name.upper().startswith("UTF8_")


def decides_ties(name: str, text: str) -> bool:
    """Whether the collation has one order among all strings whose primary weights are those of a string."""
    if by_bytes(name):
        return True
    if base_of(name).lower() == "fr_can" or any(char > _LAST_LATIN for char in text):
        return False
    letters = "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text).casefold()))
    return "ss" not in letters


def primary(name: str) -> str:
    """The collation of the same base that compares primary weights alone."""
    if by_bytes(name):
        return name
    return f"{base_of(name)}_CI_AI{'_RTRIM' if name.upper().endswith('_RTRIM') else ''}"
