"""CHAR(n) and VARCHAR(n), which Delta stores as strings with their declared type in the metadata of the top column.

The rule: files hold texts as they were written, and whoever reads a CHAR(n) sees it with blanks up to n code points.
Longer texts stay as they are. This holds inside of structs, arrays and maps too.

Source: Spark's CharVarcharUtils (`__CHAR_VARCHAR_TYPE_STRING`), ApplyCharTypePadding and readSidePadding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import late
from mica.arrays import NDArray, from_numpy, scalar, to_numpy
from mica.collation.identifier import parse
from mica.collation.names import to_sql
from mica.records import dataclass
from mica.schema.collations import COLLATIONS
from mica.schema.lists import entries_of, offsets_from_zero, with_offsets
from mica.schema.special import CHAR_VARCHAR
from mica.schema.spelling import quote_if_needed
from mica.schema.types import STRING, TYPES, ArrayType, DataType, MapType, Primitive, StructField, StructType

_SIZED = late.pattern(r"\b(?:var)?char\(")
_PADDED = late.pattern(r"\bchar\(")
_LENGTH = late.pattern(r"(?:var)?char\((\d{1,9})\)")
_COLLATED = late.pattern(r"((?:var)?char\(\d{1,9}\))(?: collate .*)?", re.DOTALL)
_NAME = late.pattern(r"`((?:[^`]|``)*)`:|([^:]*):")
_PLAIN = late.pattern(r"[^,<>()]*(?:\([^()]*\))?[^,<>()]*")


@dataclass(frozen=True)
class _Declared:
    """A declared type: its text, and the types inside of it by name (`element` of lists, `key` and `value` of maps)."""

    text: str
    inside: Mapping[str, _Declared]


def declared(field: StructField) -> str:
    """The declared type of a column that has a CHAR or VARCHAR in it; otherwise an empty text. It has the names that
    fields have now, and no collations."""
    type_ = _sized_column(field).type
    return "" if type_ is field.type or _unsized(type_) is type_ else _catalog(type_, None, "")


def inside(text: str, name: str) -> str:
    """The declared type of a field of a struct, as `declared`."""
    found = _parsed(text) if text else None
    one = None if found is None else found.inside.get(name.lower())
    return one.text if one is not None and _SIZED.search(one.text) else ""


def at(field: StructField, path: Sequence[str]) -> str:
    """The declared type of a column, or at a path into it (`element`, `key` and `value` too), as `declared`."""
    found = declared(field)
    for name in path:
        found = inside(found, name)
    return found


def is_padded(text: str) -> bool:
    """Whether a declared type has a CHAR in it."""
    return _PADDED.search(text) is not None


def char_length(text: str) -> int | None:
    """The n of a declared type that is CHAR(n) itself."""
    found = _LENGTH.fullmatch(text)
    return int(found[1]) if found is not None and text.startswith("char") else None


def is_wider(before: str, after: str) -> bool:
    """Whether texts of a declared type are of another one too (empty: a string), as Spark alters a column."""
    old, new = _LENGTH.fullmatch(before), _LENGTH.fullmatch(after)
    if old is None or (after and new is None):
        return False
    return new is None or (after.startswith("varchar") and int(new[1]) >= int(old[1]))


def padded(values: pa.Array, text: str) -> pa.Array:
    """The values of a declared type as a reader sees them."""
    found = _parsed(text) if text and is_padded(text) else None
    return values if found is None else _padded(values, found)


def unpadded(texts: pa.Array, field: StructField) -> pa.Array:
    """Texts of a CHAR(n) as partitions are called: without the blanks that its readers add, so that a partition has one
    name whoever writes it. Of blanks alone one is left: an empty text would be null."""
    if char_length(declared(field)) is None:
        return texts
    bare = pc.utf8_rtrim(texts, " ")
    return pc.if_else(pc.and_(pc.equal(bare, ""), pc.not_equal(texts, "")), scalar(" ", bare.type), bare)


def too_long(values: pa.Array, text: str) -> pa.Array:
    """Which of the values hold a text that is longer than their declared type allows."""
    found = _parsed(text)
    return pa.repeat(scalar(False), len(values)) if found is None else from_numpy(_too_long(values, found))


# --- texts of types


def restated(schema: StructType) -> StructType:
    """The schema after a change of its fields: the declared types of columns name the fields that they have now."""
    return StructType(tuple(_stated(f) for f in sized(schema).fields))


def sized(schema: StructType) -> StructType:
    """The schema with primitives called `char(n)` and `varchar(n)` in its types, for changes of these."""
    return StructType(tuple(map(_sized_column, schema.fields)))


def _sized_column(column: StructField) -> StructField:
    """The same column if it has no declared type, or one that cannot be read."""
    text = column.metadata.get(CHAR_VARCHAR)
    parsed = _parsed(text) if isinstance(text, str) and _SIZED.search(text) else None
    if parsed is None:
        return column
    return replace(column.with_metadata({CHAR_VARCHAR: None}), type=_sized(column.type, parsed))


def _sized(type_: DataType, declared: _Declared) -> DataType:
    def of(found: _Declared | None, inner: DataType) -> DataType:
        return inner if found is None else _sized(inner, found)

    inside = declared.inside
    match type_:
        case ArrayType(element):
            return replace(type_, element=of(inside.get("element"), element))
        case MapType(key, value):
            return replace(type_, key=of(inside.get("key"), key), value=of(inside.get("value"), value))
        case StructType(fields):
            return StructType(tuple(replace(f, type=of(one, f.type)) for f, one in _by_field(fields, inside)))
    text = _COLLATED.fullmatch(declared.text)
    return Primitive(text[1]) if type_ == STRING and text is not None else type_


def _by_field(
    fields: Sequence[StructField], inside: Mapping[str, _Declared]
) -> Iterator[tuple[StructField, _Declared | None]]:
    """The declared type of each field: the one of its name, or of its place if no field has that name, because
    delta-spark renames a field but not its declared type."""
    names = {f.name.lower() for f in fields}
    places = [None if name in names else one for name, one in inside.items()]
    for f, one in zip_longest(fields, places[: len(fields)]):
        yield f, inside.get(f.name.lower(), one)


def _stated(column: StructField) -> StructField:
    plain, text = unsized(column.type, column.metadata.get(COLLATIONS, {}), column.name)
    return replace(column.with_metadata({CHAR_VARCHAR: text}), type=plain) if text else column


def unsized(type_: DataType, collations: Mapping[str, str], at: str) -> tuple[DataType, str]:
    """A type of which primitives may be called `char(n)` and `varchar(n)`: with strings in their place, and as it is
    declared, which is Spark's `DataType.catalogString`; empty if there are none. `collations` as in `type_to_ddl`."""
    plain = _unsized(type_)
    return plain, "" if plain is type_ else _catalog(type_, collations, at)


def _unsized(type_: DataType) -> DataType:
    """The same type if nothing in it has a length."""
    match type_:
        case Primitive(name):
            return STRING if _LENGTH.fullmatch(name) else type_
        case ArrayType(element):
            inner = _unsized(element)
            return type_ if inner is element else replace(type_, element=inner)
        case MapType(key, value):
            k, v = _unsized(key), _unsized(value)
            return type_ if k is key and v is value else replace(type_, key=k, value=v)
        case StructType(fields):
            types = [_unsized(f.type) for f in fields]
            if any(found is not f.type for f, found in zip(fields, types, strict=True)):
                return StructType(tuple(replace(f, type=found) for f, found in zip(fields, types, strict=True)))
    return type_


def _catalog(type_: DataType, collations: Mapping[str, str] | None, at: str) -> str:
    """Spark's catalog string; without collations if they are None. Names that need backticks have them, as Spark reads
    this text as DDL."""

    def of(f: StructField) -> str:
        return _catalog(f.type, None if collations is None else f.metadata.get(COLLATIONS, {}), f.name)

    match type_:
        case ArrayType(element):
            return f"array<{_catalog(element, collations, f'{at}.element')}>"
        case MapType(key, value):
            return f"map<{_catalog(key, collations, f'{at}.key')},{_catalog(value, collations, f'{at}.value')}>"
        case StructType(fields):
            return f"struct<{','.join(f'{quote_if_needed(f.name)}:{of(f)}' for f in fields)}>"
        case Primitive(name):
            text = TYPES[name].ddl[0].lower() if name in TYPES else name
            collation = None if not collations or at not in collations else parse(collations[at])
            return text if collation is None else f"{text} collate {to_sql(collation) or collation.name}"
    raise TypeError(f"{type_!r} is not a type of a schema")


@lru_cache(maxsize=1024)
def _parsed(text: str) -> _Declared | None:
    """The type, by Spark's catalog string of it; None if it is not one."""
    found, end = _type(text, 0)
    return found if end == len(text) else None


def _type(text: str, at: int) -> tuple[_Declared | None, int]:
    """The type at a place, and where it ends. Spark's own texts do not have backticks where names need them."""
    for kind, names in (("struct<", None), ("array<", ("element",)), ("map<", ("key", "value"))):
        if not text.startswith(kind, at):
            continue
        end, parts = at + len(kind), dict[str, _Declared]()
        while end < len(text) and text[end] != ">":
            end += text[end] == ","
            if names is None:
                found = _NAME.match(text, end)
                if found is None:
                    return None, at
                name, end = found[2] if found[1] is None else found[1].replace("``", "`"), found.end()
            else:
                name = names[min(len(parts), len(names) - 1)]
            one, after = _type(text, end)
            if one is None or after == end:
                return None, at
            parts[name.lower()], end = one, after
        return (_Declared(text[at : end + 1], parts), end + 1) if end < len(text) else (None, at)
    plain = _PLAIN.match(text, at)
    assert plain is not None
    return _Declared(plain[0], {}), plain.end()


# --- values


def _padded(values: pa.Array, declared: _Declared) -> pa.Array:
    if not is_padded(declared.text) or pa.types.is_null(values.type):
        return values
    length, kind = char_length(declared.text), values.type
    if length is not None:
        short = pc.less(pc.utf8_length(values), length)
        return pc.utf8_rpad(values, length, " ") if short.true_count else values
    if pa.types.is_struct(kind):
        fields = list(kind)
        children = [_in(declared, f.name, values.field(i), _padded) for i, f in enumerate(fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null() if values.null_count else None)
    if pa.types.is_map(kind):
        offsets, values = with_offsets(values)
        keys, items = (_in(declared, n, v, _padded) for n, v in (("key", values.keys), ("value", values.items)))
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind)
    if pa.types.is_list(kind):
        offsets, values = with_offsets(values)
        return pa.ListArray.from_arrays(offsets, _in(declared, "element", values.values, _padded), type=kind)
    return values


def _in(declared: _Declared, name: str, values: pa.Array, change: Callable[[pa.Array, _Declared], Any]) -> Any:
    found = declared.inside.get(name.lower())
    return values if found is None else change(values, found)


def _too_long(values: pa.Array, declared: _Declared) -> NDArray[np.bool_]:
    """One answer a value; a null is not too long."""
    kind, nothing = values.type, np.zeros(len(values), bool)
    if not _SIZED.search(declared.text) or pa.types.is_null(kind):
        return nothing
    size = _LENGTH.fullmatch(declared.text)
    if size is not None:
        found: NDArray[np.bool_] = to_numpy(pc.fill_null(pc.greater(pc.utf8_length(values), int(size[1])), False))
        return found
    if pa.types.is_map(kind):
        values, inner = entries_of(values), _Declared(f"struct<{declared.text}>", declared.inside)
        declared = _Declared(declared.text, {"element": inner})
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        before = np.concatenate([[0], np.cumsum(_too_long(values.flatten(), declared.inside["element"]))])
        ends = before[to_numpy(offsets_from_zero(values))]
        longer: NDArray[np.bool_] = ends[1:] > ends[:-1]
        return longer
    if pa.types.is_struct(kind):
        for f, child in zip(kind, values.flatten(), strict=True):  # a null struct has null fields there
            one = declared.inside.get(f.name.lower())
            nothing |= False if one is None else _too_long(child, one)
    return nothing
