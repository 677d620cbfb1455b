"""Shredding schemas of a Variant column: a tree of objects, arrays and typed leaves.

The rule: a schema names what becomes columns. Values that do not fit stay in the residual, so any schema is safe for
any data. A leaf must have a type of the standard's table.

Source: Parquet "VariantShredding", table "Shredded Value Types".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica.arguments import COUNT, SHARE, refuse_other
from mica.errors import UserError
from mica.records import dataclass
from mica.schema import json as schema_json
from mica.schema.arrow import from_arrow_type, is_list, to_arrow_type
from mica.schema.ddl import parse_type, type_to_ddl
from mica.schema.spelling import quote_if_needed
from mica.schema.types import TYPES, VARIANT, VOID, ArrayType, DataType, MapType, Primitive, StructType

if TYPE_CHECKING:
    from mica.variant.steering import PathRule

MAX_DEPTH = 100

#: Maximum levels of a written tree: pyarrow supports types of 64 levels, and a level of a tree needs two. Deeper
#: values stay in `value`; inference stops here whatever its limit.
WRITTEN_DEPTH = 30


@dataclass(frozen=True)
class Limits:
    """Limits of inference from a sample.

    `max_fields`: typed leaves per column. `max_depth`: levels of nesting, of which 30 are written at most. `min_share`:
    the share of rows that must hold a field before it becomes a column. `typed_share`: the share of a field's values
    that must have its type. `sample_rows`: rows sampled per file. `rules`: what is wanted of some paths
    (`variant.steering`).
    """

    max_fields: int = 300
    max_depth: int = WRITTEN_DEPTH
    min_share: float = 0.01
    typed_share: float = 0.75
    sample_rows: int = 4096
    rules: tuple[PathRule, ...] = ()

    def __post_init__(self) -> None:
        for name in ("max_fields", "max_depth", "sample_rows"):
            refuse_other(name, getattr(self, name), COUNT)
        for name in ("min_share", "typed_share"):
            refuse_other(name, getattr(self, name), SHARE)
        if self.max_depth > MAX_DEPTH:
            raise UserError.bad_value("max_depth", self.max_depth, f"at most {MAX_DEPTH}")
        if self.sample_rows < 1:
            raise UserError.bad_value("sample_rows", self.sample_rows, "a positive number")


@dataclass(frozen=True)
class ShreddingSchema:
    """A shredding tree. `tree` is its Arrow form: struct = object, list = array, null = untyped, otherwise a leaf."""

    tree: pa.DataType

    def __post_init__(self) -> None:
        if depth_of(self.tree) > WRITTEN_DEPTH:
            raise _bad("", f"it nests deeper than {WRITTEN_DEPTH} levels; leave deeper places untyped (VARIANT)")
        if _holds_nul(self.tree):  # what crosses to the kernel is cut there
            raise _bad("", "a name holds a NUL, which no column can have; leave the field out")

    @classmethod
    def of(cls, given: ShreddingSchema | str | DataType | pa.DataType | Mapping[str, Any] | Any) -> ShreddingSchema:
        """Accepts Spark DDL (`struct<a: bigint>`), a mapping of names to such, a Spark or Arrow type.

        Errors: INVALID_SHREDDING_SCHEMA for types that cannot be shredded to (maps, intervals, …).
        """
        match given:
            case ShreddingSchema():
                return given
            case str():
                return cls(_from_delta(parse_type(given, exact_names=True), ""))
            case DataType():
                return cls(_from_delta(given, ""))
            case pa.DataType():
                return cls(_from_arrow(given, "", 0))
            case Mapping():
                return cls(_from_arrow(_from_mapping(given, "", 0), "", 0))
        if hasattr(type(given), "jsonValue"):  # a type of PySpark, which is not imported here
            whole = f'{{"type": "struct", "fields": [{{"name": "", "type": {given.json()}}}]}}'
            return cls.of(schema_json.loads(whole).fields[0].type)
        raise UserError.bad_value("the shredding schema", given, "Spark DDL such as 'struct<a: bigint>' or a type")

    def to_ddl(self) -> str:
        """Returns Spark DDL; untyped values are VARIANT."""
        return _ddl(self.tree)

    def __str__(self) -> str:
        return self.to_ddl()


def typed_paths(tree: pa.DataType, at: str = "") -> Iterator[tuple[str, str]]:
    """The paths of a tree that have a type, with it: (`:a.b`, `BIGINT`); `[]` stands for the elements of an array."""
    if pa.types.is_struct(tree):
        for f in tree:
            yield from typed_paths(f.type, f"{at}{'.' if at else ':'}{quote_if_needed(f.name)}")
    elif pa.types.is_list(tree):
        yield from typed_paths(tree.value_type, f"{at}[]")
    elif not pa.types.is_null(tree):
        yield at, _ddl(tree)


def depth_of(tree: pa.DataType) -> int:
    """The levels below the root."""
    return max((1 + depth_of(tree.field(i).type) for i in range(tree.num_fields)), default=0)


def _holds_nul(tree: pa.DataType) -> bool:
    """Whether the name of a field, at any depth, holds a NUL."""
    fields = [tree.field(i) for i in range(tree.num_fields)]
    return any("\0" in f.name or _holds_nul(f.type) for f in fields)


def _from_delta(type_: DataType, at: str) -> pa.DataType:
    match type_:
        case StructType(fields):
            return pa.struct([pa.field(f.name, _from_delta(f.type, f"{at}.{f.name}")) for f in fields])
        case ArrayType(element):
            return pa.list_(pa.field("element", _from_delta(element, f"{at}[]")))
        case MapType():
            raise _bad(at, "a map has no fixed keys; leave it untyped (VARIANT)")
        case _ if type_ in (VARIANT, VOID):
            return pa.null()
        case Primitive(name) if name in TYPES or type_.decimal is not None:
            return to_arrow_type(type_)
        case Primitive(name):
            raise _bad(at, f"{name} is not a type that a Variant can be shredded to")
    raise _bad(at, f"{type_!r} is not a type")


def _from_mapping(given: Mapping[Any, Any], at: str, depth: int) -> pa.DataType:
    if depth > MAX_DEPTH:
        raise _bad(at, f"it nests deeper than {MAX_DEPTH} levels")
    fields = []
    for name, inner in given.items():
        if not isinstance(name, str):
            raise _bad(at, f"{name!r} is not the name of a field")
        below = isinstance(inner, Mapping)
        tree = _from_mapping(inner, f"{at}.{name}", depth + 1) if below else ShreddingSchema.of(inner).tree
        fields.append(pa.field(name, tree))
    return pa.struct(fields)


def _from_arrow(type_: pa.DataType, at: str, depth: int) -> pa.DataType:
    if depth > MAX_DEPTH:
        raise _bad(at, f"it nests deeper than {MAX_DEPTH} levels")
    t = pa.types
    if t.is_struct(type_):
        seen: set[str] = set()
        for f in type_:
            if f.name in seen:
                raise _bad(at, f"the field {f.name!r} is given twice")
            seen.add(f.name)
        return pa.struct([pa.field(f.name, _from_arrow(f.type, f"{at}.{f.name}", depth + 1)) for f in type_])
    if is_list(type_):
        return pa.list_(pa.field("element", _from_arrow(type_.value_type, f"{at}[]", depth + 1)))
    if t.is_large_string(type_) or t.is_string_view(type_):
        return pa.string()
    if t.is_large_binary(type_) or t.is_binary_view(type_):
        return pa.binary()
    if t.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, "UTC")
    legal = (
        t.is_null(type_)
        or t.is_boolean(type_)
        or t.is_signed_integer(type_)
        or type_ in (pa.float32(), pa.float64(), pa.date32(), pa.string(), pa.binary(), pa.binary(16), pa.time64("us"))
        or (t.is_decimal(type_) and type_.precision <= 38 and 0 <= type_.scale <= type_.precision)
        or (t.is_timestamp(type_) and type_.unit in ("us", "ns"))
    )
    if not legal:
        raise _bad(at, f"{type_} is not a type that a Variant can be shredded to")
    return pa.decimal128(type_.precision, type_.scale) if t.is_decimal(type_) else type_


#: The types of leaves that no column of a table has, by names of their own.
OWN_TYPES: Mapping[pa.DataType, Primitive] = {
    pa.time64("us"): Primitive("time"),
    pa.binary(16): Primitive("uuid"),
    pa.timestamp("ns"): Primitive("timestamp_ntz(9)"),
    pa.timestamp("ns", "UTC"): Primitive("timestamp(9)"),
}


_OWN_NAMES = frozenset(map(type_to_ddl, OWN_TYPES.values()))


def is_own(type_: DataType | str) -> bool:
    """Whether only leaves have the type, or the one of this DDL: no column of a table, and so no rule, can."""
    return (type_ if isinstance(type_, str) else type_to_ddl(type_)) in _OWN_NAMES


def type_of(leaf: pa.DataType) -> DataType:
    """The type of a leaf: one of `OWN_TYPES`, or that of a column with its values; VARIANT where it is untyped."""
    return VARIANT if pa.types.is_null(leaf) else OWN_TYPES.get(leaf) or from_arrow_type(leaf)


def _ddl(tree: pa.DataType) -> str:
    if pa.types.is_struct(tree):
        return f"STRUCT<{', '.join(f'{quote_if_needed(f.name)}: {_ddl(f.type)}' for f in tree)}>"
    if pa.types.is_list(tree):
        return f"ARRAY<{_ddl(tree.value_type)}>"
    return type_to_ddl(type_of(tree))


def _bad(at: str, why: str) -> UserError:
    where = f" at {at.removeprefix('.')}" if at else ""
    return UserError("INVALID_SHREDDING_SCHEMA", f"the shredding schema cannot be used{where}: {why}")
