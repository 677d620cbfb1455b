"""LIKE, startswith, endswith and contains by UTF8_LCASE, as in Spark.

The rule: exact or not at all. startswith, endswith and contains fold case as the collation does (`collation.lcase`),
and what they find begins and ends with whole characters of the text: `İ` is `i` and a dot by the collation, but does
not contain `i`. So do constant patterns of LIKE that Spark's optimizer turns into these:

| pattern without the escape character (`%%` is `%`) | becomes |
|---|---|
| `a` | a comparison |
| `a%`, `%a`, `%a%` | startswith, endswith, contains |
| `a%b` | startswith and endswith, of a text with as many characters as both |
| any other | stays |

What stays folds case as Java's patterns do: two characters match if their capitals have one small letter, as `s` and
`ſ`. The version of Java decides which letters there are, but all know those up to `ÿ` and what matches them: constant
patterns of these are evaluated here.

Source: Spark's CollationAwareUTF8String (`lowercaseMatchLengthFrom`), LikeSimplification, StringUtils.escapeLikeRegex;
Java's Pattern, UNICODE_CASE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar
from mica.collation import lcase
from mica.expressions.compare import Datum
from mica.expressions.pairs import by_rows
from mica.expressions.strings import Pattern
from mica.expressions.tree import Call, Literal
from mica.schema.types import BOOLEAN

#: The one character that becomes two.
_DOTTED = "\u0130"

#: The last character of patterns that are evaluated here.
_LAST = "\u00ff"

#: What LIKE maps to one character, of all that match a character up to `_LAST`.
_CASES = {chr(c): chr(c).lower() for c in (*range(0x41, 0x5B), *range(0xC0, 0xD7), *range(0xD8, 0xDF))} | {
    "\u0130": "i", "\u0131": "i", "\u0178": "\u00ff", "\u017f": "s", "\u039c": "\u00b5", "\u03bc": "\u00b5",
    "\u1e9e": "\u00df", "\u212a": "k", "\u212b": "\u00e5",
}  # fmt: skip
_TABLE = str.maketrans(_CASES)


def has_search(call: Call) -> bool:
    """Whether a search by UTF8_LCASE is evaluated here."""
    if call.name != "like":
        return True
    constants = [a.value for a in call.args[1:] if isinstance(a, Literal)]
    if len(constants) < len(call.args) - 1:
        return False
    return constants[0] is None or _simple(*constants) is not None or max(constants[0]) <= _LAST


def search(call: Call, args: Sequence[Datum]) -> pa.Array:
    """The search over these arguments, of which the first is an array. Raises ValueError for an invalid pattern."""
    values, part, *escape = args
    if call.name != "like":
        return _searched(call.name, values, part)
    if not part.is_valid:
        return pa.nulls(len(values), pa.bool_())
    constants = [part.as_py(), *(one.as_py() for one in escape)]
    simple = _simple(*constants)
    if simple is None:
        read = Pattern.read(*constants).parts
        return Pattern(tuple(p.translate(_TABLE) if isinstance(p, str) else p for p in read)).match(_small(values))
    names, *texts = simple
    found = [_searched(one, values, scalar(text, pa.string())) for one, text in zip(names, texts, strict=True)]
    if len(found) == 1:
        return found[0]
    return pc.and_(pc.greater_equal(pc.utf8_length(values), len("".join(texts))), pc.and_(*found))


def _simple(pattern: str, escape: str = "\\") -> tuple[Any, ...] | None:
    """What the optimizer makes of a pattern: the searches, and the text of each."""
    if escape in pattern:
        return None
    for names, shape in _SHAPES:
        if (found := re.fullmatch(shape, pattern)) is not None:
            return names, *found.groups()
    return None


def _small(values: pa.Array) -> pa.Array:
    if not pc.any(pc.invert(pc.string_is_ascii(values))).as_py():
        return pc.ascii_lower(values)
    once = values.dictionary_encode()
    return arrow_array([text.translate(_TABLE) for text in once.dictionary.to_pylist()], pa.string()).take(once.indices)


def _starts(text: str, part: str, ends: Container[int]) -> bool:
    return text.startswith(part) and len(part) in ends


def _ends(text: str, part: str, ends: Container[int]) -> bool:
    return text.endswith(part) and len(text) - len(part) in ends


def _contains(text: str, part: str, ends: Container[int]) -> bool:
    places = range(len(text) - len(part) + 1)
    return any(text.startswith(part, at) and at in ends and at + len(part) in ends for at in places)


_SHAPES = (
    (("startswith",), "([^_%]+)%+"),
    (("endswith",), "%+([^_%]+)"),
    (("startswith", "endswith"), "([^_%]+)%+([^_%]+)"),
    (("contains",), "%+([^_%]+)%+"),
    (("=",), "([^_%]*)"),
)

_WAYS: Mapping[str, tuple[Any, Callable[[str, str, Container[int]], bool]]] = {
    "=": (pc.equal, lambda text, part, _: text == part),
    "startswith": (pc.starts_with, _starts),
    "endswith": (pc.ends_with, _ends),
    "contains": (pc.match_substring, _contains),
}


def _searched(name: str, values: Datum, part: Datum) -> pa.Array:
    """One search, of all folded strings or, where a character becomes two, of each string with the ends of its
    characters."""
    whole, one = _WAYS[name]

    def of_row(text: str, part: str) -> bool:
        folded = lcase.fold(text)
        if _DOTTED not in text:
            return one(folded, lcase.fold(part), range(len(folded) + 1))
        return one(folded, lcase.fold(part), {0, *accumulate(1 + (c == _DOTTED) for c in text)})

    if not isinstance(part, pa.Scalar) or not isinstance(values, pa.Array):
        return by_rows(BOOLEAN, of_row, values, part)
    if not part.is_valid:
        return pa.nulls(len(values), pa.bool_())
    found = whole(lcase.folded(values), lcase.fold(part.as_py()))
    dotted = pc.fill_null(pc.match_substring(values, _DOTTED), False)
    if not dotted.true_count:
        return found
    return pc.replace_with_mask(found, dotted, by_rows(BOOLEAN, of_row, values.filter(dotted), part))
