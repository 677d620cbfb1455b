"""Functions that give or measure strings, as Spark's do.

The rule: a string is measured and cut in code points. Case follows Unicode's full mapping (`ß` becomes `SS`), which
ICU has in Spark and Python here (letters that a Python does not know yet stand in a table); Arrow's own maps single
code points, and is right for ASCII alone.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from mica.expressions.compare import Datum

#: Capitals that Unicode 15 to 17 added or gave small letters, which Python 3.11 does not know: capital → small.
_PAIRS = {0xA7CB: 0x0264, 0xA7DC: 0x019B} | {
    first + n: first + n + step
    for first, count, step in (
        (0x1C89, 1, 1), (0xA7CC, 1, 1), (0xA7CE, 1, 1), (0xA7D2, 1, 1), (0xA7D4, 1, 1), (0xA7DA, 1, 1),
        (0x10D50, 22, 0x20), (0x16EA0, 25, 0x1B),
    )
    for n in range(count)
}  # fmt: skip
#: The size that stands for all of a string, as in Java.
_ALL = 2**31 - 1

_CAPITALS = {small: capital for capital, small in _PAIRS.items()}


def concat(*parts: Datum) -> pa.Array:
    """The strings, or bytes, joined; null where one is null."""
    kind = parts[0].type
    return pc.binary_join_element_wise(*parts, pa.scalar("" if pa.types.is_string(kind) else b"", kind))


def lower(values: pa.Array) -> pa.Array:
    """In lower case."""
    return _mapped(values, pc.ascii_lower, lambda text: text.lower().translate(_PAIRS))


def upper(values: pa.Array) -> pa.Array:
    """In upper case."""
    return _mapped(values, pc.ascii_upper, lambda text: text.upper().translate(_CAPITALS))


def _mapped(values: pa.Array, ascii_: Callable[[pa.Array], pa.Array], full: Callable[[str], str]) -> pa.Array:
    plain = pc.string_is_ascii(values)
    if pc.all(plain).as_py() is not False:
        return ascii_(values)
    # Each distinct string once: names and words repeat.
    encoded = values.dictionary_encode()
    texts = [full(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def length(values: pa.Array) -> pa.Array:
    """Code points of strings, bytes of binary."""
    measure = pc.utf8_length if pa.types.is_string(values.type) else pc.binary_length
    return measure(values).cast(pa.int32())


def trim(values: pa.Array) -> pa.Array:
    """Without spaces (no other white space) at both ends."""
    return pc.utf8_trim(values, " ")


def ltrim(values: pa.Array) -> pa.Array:
    """Without spaces in front."""
    return pc.utf8_ltrim(values, " ")


def rtrim(values: pa.Array) -> pa.Array:
    """Without spaces at the end."""
    return pc.utf8_rtrim(values, " ")


def substring(values: pa.Array, position: pa.Scalar, size: pa.Scalar | None = None) -> pa.Array:
    """`size` code points (None: all) from `position` on: from 1, from the end where it is negative; 0 is 1."""
    begin, taken = position.as_py(), None if size is None else size.as_py()
    if begin is None or (size is not None and taken is None):
        return pa.nulls(len(values), values.type)
    if taken is not None and taken <= 0:
        return pc.if_else(pc.is_valid(values), "", values)
    if begin >= 0:
        start = max(begin - 1, 0)
        return pc.utf8_slice_codeunits(values, start, None if taken is None else start + taken)
    # A place before the string's begin uses up some of the size.
    whole = values.dictionary_encode()
    texts = [_from_end(text, begin, taken) for text in whole.dictionary.to_pylist()]
    return pa.array(texts, values.type).take(whole.indices)


def _from_end(text: str, begin: int, taken: int | None) -> str:
    start = len(text) + begin
    end = start + (_ALL if taken is None else taken)
    return text[max(start, 0) : max(end, 0)]
