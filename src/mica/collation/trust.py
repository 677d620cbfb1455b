"""How far the order of a collation can be trusted.

The rule: every ICU collation is trusted at its primary level (letters, whatever their case and accents). The order of
two strings with equal letters is trusted only if no string of such letters can contain `ß`.

ICU4J 78.3 has two comparison algorithms. If the strings differ, after a common prefix, only in characters up to U+017F
and punctuation, it uses the fast one; otherwise, or if one of `“„…µ·½` is there, the slow one. Both agree on
primary weights, as does every collation with its own `_CI_AI`, which compares only these: strings with different
primary weights have one order. For equal primary weights the two algorithms disagree, but only if a string contains
`ß`: its weights are s, a mark, s, and the fast one counts the mark to one of the first s. So
`aß <= aẞ` (slow), `aẞ <= Äss` with a soft hyphen (slow), and not `aß <= Äss` (fast); without accents `ss` and `ß` are
different in the fast one and equal in the slow one. `fr_CAN` compares accents from the end, and ignored characters
break its order in the same way, among strings of equal letters.

Therefore a minimum, found by any comparisons, has the smallest primary weights of all, and a file may be
skipped if a constant's primary weights are beyond those of a bound. If they are equal, the collation itself
decides, provided that no string of these weights can contain `ß`; otherwise nothing is proved.

UTF8_LCASE and the collations that only trim compare bytes of mapped strings and are not affected.

Source: `RuleBasedCollator.doCompare`, `CollationFastLatin` of ICU4J; measured on Spark 4.2.1 over all 145 bases.
`tests/spark/test_order.py` shows the contradictions and tests the rule, more thoroughly in the campaign.
"""

from __future__ import annotations

import unicodedata

from mica.collation.names import base_of

#: Up to here a character of primary weight `s` contains an `s` in its decomposition.
_LAST_LATIN = "\u017f"


def by_bytes(name: str) -> bool:
    """Whether a collation (by its SQL name) compares the bytes of mapped strings, without ICU."""
    return name.upper().startswith("UTF8_")


def decides_ties(name: str, text: str) -> bool:
    """Whether the collation orders all strings with the primary weights of `text` consistently."""
    if by_bytes(name):
        return True
    if base_of(name).lower() == "fr_can" or any(char > _LAST_LATIN for char in text):
        return False
    letters = "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text).casefold()))
    return "ss" not in letters


def primary(name: str) -> str:
    """Returns the collation of the same base that compares only primary weights."""
    if by_bytes(name):
        return name
    return f"{base_of(name)}_CI_AI{'_RTRIM' if name.upper().endswith('_RTRIM') else ''}"
