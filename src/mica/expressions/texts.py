"""Functions that return or measure strings, as in Spark.

The rule: a string is measured and cut in code points. Case follows Unicode's full mapping (`ß` becomes `SS`), by
ICU in Spark and by Python here (a table adds letters that Python does not know yet). Arrow maps single code points, and
is used for ASCII only.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from mica import compute as pc
from mica import late
from mica.arrays import arrow_array, scalar
from mica.expressions.compare import Datum
from mica.expressions.pairs import by_rows
from mica.schema import char
from mica.schema.types import STRING

#: Case pairs that Unicode 15 to 17 added and Python 3.11 does not know: capital → small.
_PAIRS = {0xA7CB: 0x0264, 0xA7DC: 0x019B} | {
    first + n: first + n + step
    for first, count, step in (
        (0x1C89, 1, 1), (0xA7CC, 1, 1), (0xA7CE, 1, 1), (0xA7D2, 1, 1), (0xA7D4, 1, 1), (0xA7DA, 1, 1),
        (0x10D50, 22, 0x20), (0x16EA0, 25, 0x1B),
    )
    for n in range(count)
}  # fmt: skip
#: The size that stands for all of a string, as in Java.
ALL = 2**31 - 1

_CAPITALS = {small: capital for capital, small in _PAIRS.items()}
_ADDED = late.pattern(f"([{''.join(map(chr, (*_PAIRS, *_CAPITALS)))}])")

#: The name of `too_long`, which no text can call.
TOO_LONG = "too long"


def concat(*parts: Datum) -> pa.Array:
    """Joins strings, or bytes; null if one is null."""
    kind = parts[0].type
    return pc.binary_join_element_wise(*parts, scalar("" if pa.types.is_string(kind) else b"", kind))


def lower(values: pa.Array) -> pa.Array:
    """Converts to lower case."""
    return _mapped(values, pc.ascii_lower, lowered)


def lowered(text: str) -> str:
    """One text in lower case: to a sigma beside it, a letter that Python does not know is one like `a`."""
    parts = _ADDED.split(text)
    if len(parts) == 1:
        return text.lower()
    for at, part in enumerate(parts):
        before, after = "a" * (at > 0), "a" * (at + 1 < len(parts))
        found = f"{before}{part}{after}".lower()
        parts[at] = part.translate(_PAIRS) if at % 2 else found[len(before) : len(found) - len(after)]
    return "".join(parts)


def upper(values: pa.Array) -> pa.Array:
    """Converts to upper case."""
    return _mapped(values, pc.ascii_upper, lambda text: text.upper().translate(_CAPITALS))


def _mapped(values: pa.Array, ascii_: Callable[[pa.Array], pa.Array], full: Callable[[str], str]) -> pa.Array:
    plain = pc.string_is_ascii(values)
    if pc.all(plain).as_py() is not False:
        return ascii_(values)
    # Map each distinct string once: names and words repeat.
    encoded = values.dictionary_encode()
    texts = [full(text) for text in encoded.dictionary.to_pylist()]
    return arrow_array(texts, pa.string()).take(encoded.indices)


def length(values: pa.Array) -> pa.Array:
    """Counts code points of strings, bytes of binary."""
    measure = pc.utf8_length if pa.types.is_string(values.type) else pc.binary_length
    return measure(values).cast(pa.int32())


def replace(values: pa.Array, search: pa.Scalar, new: pa.Scalar | None = None) -> pa.Array:
    """Replaces every occurrence of a text, from left to right; nothing is found of an empty one."""
    text = "" if new is None else new.as_py()
    if search.as_py() is None or text is None:
        return pa.nulls(len(values), values.type)
    return pc.replace_substring(values, search.as_py(), text) if search.as_py() else values


def trim(values: Datum, taken: Datum | None = None) -> pa.Array:
    """Removes spaces (no other white space), or any of the characters that are given, at both ends."""
    return _trimmed(values, taken, pc.utf8_trim, str.strip)


def ltrim(values: Datum, taken: Datum | None = None) -> pa.Array:
    """Removes them in front."""
    return _trimmed(values, taken, pc.utf8_ltrim, str.lstrip)


def rtrim(values: Datum, taken: Datum | None = None) -> pa.Array:
    """Removes them at the end."""
    return _trimmed(values, taken, pc.utf8_rtrim, str.rstrip)


def _trimmed(values: Datum, taken: Datum | None, whole: Callable[..., pa.Array], one: Callable[..., str]) -> pa.Array:
    characters = " " if taken is None else taken.as_py() if isinstance(taken, pa.Scalar) else None
    if characters is None or not isinstance(values, pa.Array):
        return by_rows(STRING, one, values, taken)
    return whole(values, characters) if characters else values


def substring(values: pa.Array, position: pa.Scalar, size: pa.Scalar | None = None) -> pa.Array:
    """Returns `size` code points (None: all) from the 1-based `position`; negative counts from the end, 0 is 1."""
    begin, taken = position.as_py(), None if size is None else size.as_py()
    if begin is None or (size is not None and taken is None):
        return pa.nulls(len(values), values.type)
    if taken is not None and taken <= 0:
        return pc.if_else(pc.is_valid(values), "", values)
    if begin >= 0:
        start = max(begin - 1, 0)
        return pc.utf8_slice_codeunits(values, start, None if taken is None else start + taken)
    # A position before the string's start uses up some of the size, in Arrow too.
    end = begin + (ALL if taken is None else taken)
    return pc.utf8_slice_codeunits(values, begin, None if end >= 0 else end)


def rpad(values: pa.Array, size: pa.Scalar, filling: pa.Scalar | None = None) -> pa.Array:
    """Returns `size` code points of each text and of the filling, again and again, behind it."""
    wanted, text = size.as_py(), " " if filling is None else filling.as_py()
    if wanted is None or text is None:
        return pa.nulls(len(values), values.type)
    if wanted <= 0:
        return pc.if_else(pc.is_valid(values), "", values)
    longest = text * -(-wanted // len(text)) if text else ""
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(values, longest, ""), 0, wanted)


def too_long(values: pa.Array, declared: pa.Scalar) -> pa.Array:
    """Whether a text in each value is longer than its declared type allows."""
    return char.too_long(values, declared.as_py())
