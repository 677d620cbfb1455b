"""Functions that find, cut, repeat and rearrange parts of strings, as in Spark.

The rule: a string is a sequence of code points, counted from 1. What Arrow has no function for is evaluated once for
each distinct combination of arguments.

Source: Spark's stringExpressions.scala; UTF8String: indexOf, lpad, substringSQL, subStringIndex, findInSet,
levenshteinDistance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.expressions import texts
from mica.expressions.compare import Datum
from mica.expressions.lists import compact
from mica.expressions.pairs import as_array, as_arrays, by_rows, tried_by_rows
from mica.expressions.room import MOST_BYTES, NoRoomError
from mica.expressions.signatures import RISES, Asked, Function, Signature
from mica.schema.types import BINARY, INTEGER, INTEGRALS, LONG, STRING, VOID, ArrayType, DataType, Primitive


def locate(sought: Datum, values: Datum, start: Datum | None = None) -> pa.Array:
    """Where a text begins in another one from a place on, 0 if nowhere; 0 also from the place NULL."""
    known = [v for v in (values, sought, start) if isinstance(v, pa.Array)]
    if start is None and isinstance(sought, pa.Scalar) and sought.is_valid and _is_ascii(values):
        return pc.add(pc.find_substring(values, sought.as_py()), 1).cast(pa.int32())
    if start is None:
        return by_rows(INTEGER, lambda text, part: text.find(part) + 1, values, sought)
    places = as_array(start, len(known[0]))
    found = by_rows(INTEGER, _located, values, sought, pc.fill_null(places, 0))
    return pc.if_else(pc.is_null(places), scalar(0, pa.int32()), found)


def _located(text: str, sought: str, start: int) -> int:
    if start < 1:
        return 0
    # Nothing is found at once, also behind the end.
    return text.find(sought, start - 1) + 1 if sought else 1


def _is_ascii(values: pa.Array) -> bool:
    return pc.all(pc.string_is_ascii(values)).as_py() is not False


def lpad(values: Datum, size: Datum, filling: Datum | None = None) -> pa.Array:
    """As many code points of the filling, again and again, before each text as make it `size` long; cut if longer."""
    filling = scalar(" ") if filling is None else filling
    known = isinstance(size, pa.Scalar) and size.is_valid and isinstance(filling, pa.Scalar) and filling.is_valid
    if known and isinstance(values, pa.Array):
        wanted = max(size.as_py(), 0)
        lacking = pc.subtract(wanted, pc.utf8_length(values)).dictionary_encode()
        before = [_filling(filling.as_py(), count) for count in lacking.dictionary.to_pylist()]
        kept = pc.utf8_slice_codeunits(values, 0, wanted)
        return pc.binary_join_element_wise(arrow_array(before, pa.string()).take(lacking.indices), kept, "")
    return by_rows(STRING, lambda text, n, pad: _filling(pad, n - len(text)) + text[: max(n, 0)], values, size, filling)


def rpad(values: Datum, size: Datum, filling: Datum | None = None) -> pa.Array:
    """The filling behind each text."""
    filling = scalar(" ") if filling is None else filling
    if isinstance(values, pa.Array) and isinstance(size, pa.Scalar) and isinstance(filling, pa.Scalar):
        return texts.rpad(values, size, filling)
    return by_rows(STRING, lambda text, n, pad: text[: max(n, 0)] + _filling(pad, n - len(text)), values, size, filling)


def _filling(pad: str, count: int) -> str:
    return _times(pad, count // len(pad) + 1)[:count] if pad and count > 0 else ""


def _times(text: str, count: int) -> str:
    """The text several times. Errors: TOO_LARGE, before the memory is taken."""
    if len(text) * count > MOST_BYTES:
        raise NoRoomError.of(f"{count:,} repetitions of a text")
    return text * max(count, 0)


def substring(values: Datum, place: Datum, size: Datum | None = None) -> pa.Array:
    """The code points from a place on, which counts from the end if negative."""
    constant = isinstance(place, pa.Scalar) and (size is None or isinstance(size, pa.Scalar))
    if constant and isinstance(values, pa.Array):
        return texts.substring(values, place, size)
    return by_rows(STRING, cut, values, place, *(() if size is None else (size,)))


def cut(text: str, place: int, size: int = texts.ALL) -> str:
    """`substring` of one text."""
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    end = min(start + size, texts.ALL)
    return text[max(start, 0) : max(end, 0)]


def right(values: Datum, size: Datum) -> pa.Array:
    """The last code points."""
    if isinstance(values, pa.Array) and isinstance(size, pa.Scalar) and size.is_valid and size.as_py() > 0:
        return texts.substring(values, scalar(-size.as_py(), pa.int32()))
    return by_rows(STRING, lambda text, n: text[-n:] if n > 0 else "", values, size)


def overlay(values: Datum, new: Datum, place: Datum, size: Datum | None = None) -> pa.Array:
    """Each text with another one in place of `size` code points, by default of as many as the other one has."""
    size = scalar(-1, pa.int32()) if size is None else size

    def one(text: str, other: str, at: int, count: int) -> str:
        end = at + (count if count >= 0 else len(other))
        return cut(text, 1, at - 1) + other + cut(text, end)

    return by_rows(STRING, one, values, new, place, size)


def substring_index(values: Datum, mark: Datum, count: Datum) -> pa.Array:
    """What stands before the n-th mark, or behind it, counted from the end, if n is negative."""
    return by_rows(STRING, _up_to, values, mark, count)


def _up_to(text: str, mark: str, count: int) -> str:
    if not mark or not count:
        return ""
    at = -1 if count > 0 else len(text)
    for _ in range(abs(count)):
        # Marks may overlap.
        at = text.find(mark, at + 1) if count > 0 else text.rfind(mark, 0, max(at - 1 + len(mark), 0))
        if at < 0:
            return text
    return text[:at] if count > 0 else text[at + len(mark) :]


def split_part(values: Datum, mark: Datum, number: Datum) -> tuple[pa.Array, pa.Array | None]:
    """The n-th part between marks, from the end if n is negative, an empty text if there is none. 0 fails."""

    def one(text: str, by: str, n: int) -> str | None:
        parts = text.split(by) if by else [text]
        if not n:
            return None
        return parts[n - 1 if n > 0 else n] if abs(n) <= len(parts) else ""

    return tried_by_rows(STRING, one, values, mark, number)


def replace(values: Datum, sought: Datum, new: Datum | None = None) -> pa.Array:
    """Every occurrence replaced."""
    new = scalar("") if new is None else new
    if isinstance(values, pa.Array) and isinstance(sought, pa.Scalar) and isinstance(new, pa.Scalar):
        return texts.replace(values, sought, new)
    return by_rows(STRING, lambda text, one, other: text.replace(one, other) if one else text, values, sought, new)


def repeat(values: Datum, count: Datum) -> pa.Array:
    """Each text several times."""
    return by_rows(STRING, _times, values, count)


def space(count: pa.Array) -> pa.Array:
    """As many spaces."""
    return by_rows(STRING, lambda n: _times(" ", n), count)


def translate(values: Datum, old: Datum, new: Datum) -> pa.Array:
    """Each character of the one text replaced by that at the same place of the other one, or removed."""

    def one(text: str, before: str, after: str) -> str:
        table: dict[int, str | None] = {}
        for at, c in enumerate(before):
            # A zero character is Spark's sign for what is removed.
            found = after[at] if at < len(after) else "\0"
            table.setdefault(ord(c), None if found == "\0" else found)
        return text.translate(table)

    return by_rows(STRING, one, values, old, new)


def ascii_code(values: pa.Array) -> pa.Array:
    """The code point of the first character; 0 of an empty text."""
    return by_rows(INTEGER, lambda text: ord(text[0]) if text else 0, values)


def character(numbers: pa.Array) -> pa.Array:
    """The character of the low eight bits; an empty text for a negative number."""
    return by_rows(STRING, lambda n: "" if n < 0 else chr(n & 0xFF), numbers)


def find_in_set(sought: Datum, values: Datum) -> pa.Array:
    """The place of a text in a list with commas; 0 if it is not there, or has a comma."""

    def one(text: str, every: str) -> int:
        parts = every.split(",")
        return parts.index(text) + 1 if "," not in text and text in parts else 0

    return by_rows(INTEGER, one, sought, values)


def levenshtein(left: Datum, right: Datum, most: Datum | None = None) -> pa.Array:
    """How many characters must be put in, taken out or changed; -1 if they are more than `most`."""
    if most is None:
        return by_rows(INTEGER, _distance, left, right)

    def one(text: str, other: str, limit: int) -> int:
        found = _distance(text, other)
        return found if found <= limit else -1

    return by_rows(INTEGER, one, left, right, most)


def _distance(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for n, c in enumerate(left, 1):
        before, row[0] = row[0], n
        for at, other in enumerate(right, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (c != other))
    return row[-1]


def of_any_texts(asked: Asked) -> Signature | None:
    """A text, and texts or arrays of texts."""
    first, *others = asked.types
    parts = [t if isinstance(t, ArrayType) else STRING for t in others]
    if not all(_is_plain(t) or t == ArrayType(STRING) for t in (first, *others)) or isinstance(first, ArrayType):
        return None
    return (STRING, *parts), STRING


def _is_plain(type_: DataType) -> bool:
    return isinstance(type_, Primitive) and (type_.known or type_ == VOID)


def concat_ws(mark: Datum, *parts: Datum) -> pa.Array:
    """The texts, and those in arrays, joined by a mark, without those that are NULL."""
    marks, *columns = as_arrays(mark, *parts)
    if not parts:
        return pc.if_else(pc.is_valid(marks), "", marks)
    joined = [_joined(column, marks) for column in columns]
    # Arrow leaves rows out of which all are NULL; joined, they are an empty text.
    there = joined[0].is_valid()
    for part in joined[1:]:
        there = pc.or_(there, part.is_valid())
    joined[0] = pc.if_else(there, joined[0], "")
    return pc.binary_join_element_wise(*joined, marks, null_handling="skip")


def _joined(values: pa.Array, marks: pa.Array) -> pa.Array:
    """An array of texts as one text; NULL if it has none."""
    if not pa.types.is_list(values.type):
        return values
    own = compact(values)
    return pc.if_else(pc.greater(pc.list_value_length(own), 0), pc.binary_join(own, marks), scalar(None, pa.string()))


def _of_choice(asked: Asked) -> Signature | None:
    """A number, and texts or all bytes."""
    first, *others = asked.types
    if first not in (*INTEGRALS, STRING, VOID) or not others or not all(map(_is_plain, others)):
        return None
    kind = BINARY if all(t == BINARY for t in others) else STRING
    return (INTEGER, *[kind] * len(others)), kind


def elt(number: Datum, *parts: Datum, ansi: bool) -> tuple[pa.Array, pa.Array | None]:
    """The n-th value. Fails with ANSI if there is none."""
    numbers, *columns = as_arrays(number, *parts)
    count = len(numbers)
    places = to_numpy(pc.fill_null(numbers, 1))
    failed = (places < 1) | (places > len(parts))
    at = np.where(failed, 0, places.astype(np.int64) - 1) * count + np.arange(count)
    found = pa.concat_arrays(columns).take(arrow_array(at, mask=failed | to_numpy(pc.is_null(numbers))))
    return found, arrow_array(failed) if ansi and failed.any() else None


def initcap(values: pa.Array) -> pa.Array:
    """The first letter of each word as a capital, the others small; words end at spaces."""
    return by_rows(STRING, lambda text: " ".join(map(_capitalized, text.split(" "))), values)


def _capitalized(word: str) -> str:
    return word[:1].title() + texts.lowered(word)[len(texts.lowered(word[:1])) :]


def _from_start(place: int, *_: int) -> bool:
    return place in (0, 1)


FUNCTIONS: Mapping[str, Function] = {
    "locate": Function((STRING, STRING, INTEGER), INTEGER, locate, optional=1, of_null=True),
    "lpad": Function((STRING, INTEGER, STRING), STRING, lpad, optional=1),
    "rpad": Function((STRING, INTEGER, STRING), STRING, rpad, optional=1),
    "substring": Function(
        (STRING, INTEGER, INTEGER), STRING, substring, optional=1, order=(RISES,), orders=_from_start
    ),
    "right": Function((STRING, INTEGER), STRING, right),
    "overlay": Function((STRING, STRING, INTEGER, INTEGER), STRING, overlay, optional=1),
    "substring_index": Function((STRING, STRING, INTEGER), STRING, substring_index),
    "split_part": Function((STRING, STRING, INTEGER), STRING, split_part),
    "replace": Function((STRING, STRING, STRING), STRING, replace, optional=1),
    "repeat": Function((STRING, INTEGER), STRING, repeat),
    "space": Function((INTEGER,), STRING, space),
    "translate": Function((STRING, STRING, STRING), STRING, translate),
    "ascii": Function((STRING,), INTEGER, ascii_code),
    "char": Function((LONG,), STRING, character),
    "find_in_set": Function((STRING, STRING), INTEGER, find_in_set),
    "levenshtein": Function((STRING, STRING, INTEGER), INTEGER, levenshtein, optional=1),
    "initcap": Function((STRING,), STRING, initcap),
    "concat_ws": Function((STRING, VOID), STRING, concat_ws, optional=1, repeats=True, of_null=True,
                          elements=True, resolve=of_any_texts),
    "elt": Function((VOID, VOID), VOID, elt, repeats=True, of_null=True, resolve=_of_choice, needs=("ansi",)),
}  # fmt: skip
