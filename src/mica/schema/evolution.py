"""Whether incoming rows can be written to a table, and how their columns must be cast.

The rule: a write keeps every value or fails. Types are widened if all values fit; if only some would fit (a long into
an INT column) each value is checked; nothing is rounded, truncated or parsed. Names are matched case-insensitively, as
in Spark; the table's spelling and order apply. Missing nullable columns become null; columns that the table does not
have are an error.

Source: Spark's `Cast.canUpCast` and store assignment; Delta protocol, "Column Invariants" for NOT NULL.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pyarrow as pa

from mica import compute as pc
from mica.arrays import scalar
from mica.errors import UserError
from mica.records import dataclass
from mica.schema.arrow import from_arrow_type, is_list, is_variant, to_arrow, to_arrow_field, to_arrow_type
from mica.schema.ddl import type_to_ddl
from mica.schema.interval_types import is_interval
from mica.schema.lists import entries_of, offsets_from_zero
from mica.schema.types import (
    DOUBLE,
    FLOAT,
    INTEGRALS,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    Primitive,
    StructField,
    StructType,
    refuse_twice,
)

_Cast = Callable[[pa.Array], pa.Array]

#: What an error about columns that the table lacks advises.
EVOLUTION = "To add new ones, give schema_evolution=True (INSERT WITH SCHEMA EVOLUTION in SQL); else remove them."

#: Converts a plain column to Variants, if the caller can (`mica.variant.plain`).
VariantCast = Callable[[pa.Field, str], _Cast | None]


@dataclass(frozen=True)
class WritePlan:
    """The conversion of rows of one Arrow schema to rows of a table."""

    arrow: pa.Schema
    _columns: tuple[tuple[int, _Cast] | None, ...]
    #: Columns that rows may lack, since the caller completes them: they are null here, even if they are NOT NULL.
    supplied: frozenset[str] = frozenset()

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the batch in the table's order, names and types. Errors: INVALID_VALUE, NULL_IN_NOT_NULL_COLUMN."""
        arrays = []
        for target, source in zip(self.arrow, self._columns, strict=True):
            if source is None:
                array = pa.nulls(batch.num_rows, target.type)
            else:
                index, cast = source
                try:
                    array = cast(batch.column(index))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
                    raise _bad_value(target.name, str(e)) from e
            if source is not None or target.name not in self.supplied:
                check_nulls(array, target, target.name)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)


def plan_write(
    table: StructType,
    incoming: pa.Schema,
    *,
    variants: VariantCast | None = None,
    supplied: frozenset[str] = frozenset(),
) -> WritePlan:
    """Decides whether rows of `incoming` can be appended to a table of schema `table`. `variants` converts plain
    columns to Variants; without it they are rejected. `supplied` are columns that the caller completes where they are
    missing.

    Errors: UNKNOWN_COLUMN for a column that the table does not have, MISSING_COLUMN for a missing NOT NULL column,
    INCOMPATIBLE_TYPE with both types, DUPLICATE_COLUMN.
    """
    refuse_twice(incoming.names)
    indices = {f.name.lower(): i for i, f in enumerate(incoming)}
    known = {f.name.lower() for f in table.fields}
    new = [f for f in incoming if f.name.lower() not in known]
    if new:
        names = ", ".join(repr(f.name) for f in new)
        raise UserError(
            "UNKNOWN_COLUMN",
            f"the table has no column {names}",
            hint=f"Its columns are: {', '.join(table.names) or 'none'}. {EVOLUTION}",
        )
    columns: list[tuple[int, _Cast] | None] = []
    for f in table.fields:
        index = indices.get(f.name.lower())
        if index is None:
            if not f.nullable and f.name not in supplied:
                raise UserError("MISSING_COLUMN", f"the column {f.name!r} is NOT NULL and is missing")
            columns.append(None)
        else:
            columns.append((index, cast_to(incoming.field(index), f, f.name, variants)))
    return WritePlan(to_arrow(table), tuple(columns), supplied)


def cast_to(source: pa.Field, target: StructField, at: str, variants: VariantCast | None = None) -> _Cast:
    """Returns a function that casts arrays of `source` to the target's Arrow type; raises if values could be lost."""
    if target.type == VARIANT:
        return (None if variants is None else variants(source, at)) or _variant_cast(source, at)
    if is_variant(source):
        raise _incompatible(source, target, at)
    if is_interval(target.type) and source.type == to_arrow_type(target.type):
        return lambda array: array  # of a merge's source: no column of a table is one
    match target.type:
        case StructType() as struct if pa.types.is_struct(source.type):
            return _struct_cast(source, struct, at, variants)
        case ArrayType(element, contains_null) if is_list(source.type):
            return _list_cast(source, StructField("element", element, contains_null), at, variants)
        case MapType() as map_ if pa.types.is_map(source.type):
            return _map_cast(source, map_, at, variants)
        case Primitive() if _may_cast(from_arrow_type(source.type, at), target.type):
            return primitive_cast(to_arrow_field(target).type)
    if pa.types.is_null(source.type):
        wanted = to_arrow_field(target).type
        return lambda array: pa.nulls(len(array), wanted)
    raise _incompatible(source, target, at)


def _may_cast(source: DataType, target: Primitive) -> bool:
    if source in (target, VOID):
        return True
    if not isinstance(source, Primitive):
        return False
    if target in INTEGRALS:
        # Narrowing is checked value by value: plain Python ints come as int64, and most columns are INT.
        return source in INTEGRALS
    if target.decimal is not None:
        return source in INTEGRALS or source.decimal is not None
    if target == DOUBLE:
        return source in (*INTEGRALS[:3], FLOAT)
    if target == FLOAT:
        return source in INTEGRALS[:2]
    return source.name == "date" and target.name == "timestamp_ntz"


def primitive_cast(wanted: pa.DataType) -> _Cast:
    """Returns the cast of any of the arrays whose values the type may hold; it fails where it does not hold one."""

    def cast(array: pa.Array) -> pa.Array:
        if array.type == wanted:
            return array
        array = decoded(array)
        if pa.types.is_integer(array.type) and pa.types.is_decimal(wanted):
            # Arrow requires room for the source type's range; here only the actual values matter.
            array = pc.cast(array, pa.decimal128(20, 0))
        return pc.cast(_near(array), wanted, safe=True)

    return cast


def _near(array: pa.Array) -> pa.Array:
    """The same values; texts and bytes that lie beyond 2 GiB are copied, since Arrow's cast to short offsets asks where
    they end, also in a slice, and not how many they are."""
    if not len(array) or not (pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)):
        return array
    width = pa.int64().byte_width
    end = array.buffers()[1].slice(width * (array.offset + len(array)), width).to_pybytes()
    is_near = int.from_bytes(end, sys.byteorder) < 1 << 31
    return array if is_near else pc.copied(array)


def holds_bytes(type_: pa.DataType) -> bool:
    """Whether an array of the type holds bytes, in any of Arrow's layouts."""
    t = pa.types
    if t.is_dictionary(type_) or t.is_run_end_encoded(type_):
        return holds_bytes(type_.value_type)
    return bool(t.is_binary(type_) or t.is_large_binary(type_) or t.is_binary_view(type_))


def decoded(array: pa.Array) -> pa.Array:
    """The values themselves, without runs or a dictionary. Arrow takes none of views, as polars has."""
    if pa.types.is_run_end_encoded(array.type):
        return decoded(pc.run_end_decode(array))
    if not pa.types.is_dictionary(array.type):
        return array
    values = array.dictionary
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        values = pc.cast(values, pa.large_string() if pa.types.is_string_view(values.type) else pa.large_binary())
    return pc.take(values, array.indices)


def _struct_cast(source: pa.Field, target: StructType, at: str, variants: VariantCast | None) -> _Cast:
    indices: dict[str, int] = {}
    for i, f in enumerate(source.type):
        if f.name.lower() in indices:
            raise UserError("DUPLICATE_COLUMN", f"the struct {at!r} has the field {f.name!r} twice")
        indices[f.name.lower()] = i
    for f in source.type:
        if target.find(f.name) is None:
            known = ", ".join(f"{at}.{name}" for name in target.names)
            raise UserError(
                "UNKNOWN_COLUMN", f"the table has no column '{at}.{f.name}'", hint=f"There are: {known}. {EVOLUTION}"
            )
    children: list[tuple[int, _Cast] | None] = []
    for wanted in target.fields:
        index = indices.get(wanted.name.lower())
        if index is None and not wanted.nullable:
            raise UserError("MISSING_COLUMN", f"the column '{at}.{wanted.name}' is NOT NULL and is missing")
        cast = None if index is None else cast_to(source.type.field(index), wanted, f"{at}.{wanted.name}", variants)
        children.append(None if index is None or cast is None else (index, cast))
    fields = [to_arrow_field(f) for f in target.fields]

    def run(array: pa.Array) -> pa.Array:
        given = _children(array)
        arrays = [
            pa.nulls(len(array), f.type) if c is None else c[1](given[c[0]])
            for f, c in zip(fields, children, strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        if not fields:
            return pc.cast(array, pa.struct([]))
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

    return run


def _children(array: pa.Array) -> list[pa.Array]:
    # `field` ignores the slice of an array; `flatten` respects it and makes children of null structs null,
    # which is the intended meaning. One call gives all: there may be thousands.
    children: list[pa.Array] = array.flatten()
    for index, child in enumerate(array.type):
        if pa.types.is_run_end_encoded(child.type):
            # Runs have no nulls of their own, which `flatten` would give them.
            runs = pc.run_end_decode(array.field(index))
            nulls = array.is_valid() if array.null_count else None
            children[index] = runs if nulls is None else pc.if_else(nulls, runs, scalar(None, runs.type))
    return children


def _list_cast(source: pa.Field, element: StructField, at: str, variants: VariantCast | None) -> _Cast:
    cast = cast_to(source.type.value_field, element, f"{at}.element", variants)
    wanted = to_arrow_field(element)

    def run(array: pa.Array) -> pa.Array:
        # Lists of any layout are taken as they are: Arrow's cast of list views to lists loses values.
        values = cast(_own(array.flatten()))
        check_nulls(values, wanted, f"{at}.element")
        return pa.ListArray.from_arrays(
            offsets_from_zero(array), values, type=pa.list_(wanted), mask=array.is_null() if array.null_count else None
        )

    return run


def _map_cast(source: pa.Field, target: MapType, at: str, variants: VariantCast | None) -> _Cast:
    key_field = StructField("key", target.key, False)
    value_field = StructField("value", target.value, target.value_contains_null)
    key = cast_to(source.type.key_field, key_field, f"{at}.key")
    value = cast_to(source.type.item_field, value_field, f"{at}.value", variants)
    wanted = to_arrow_type(target)

    def run(array: pa.Array) -> pa.Array:
        listed = entries_of(array)
        entries = _own(listed.flatten())
        keys, values = _children(entries)
        keys, values = key(keys), value(values)
        check_nulls(values, wanted.item_field, f"{at}.value")
        mask = array.is_null() if array.null_count else None
        return pa.MapArray.from_arrays(offsets_from_zero(listed), keys, values, type=wanted, mask=mask)

    return run


def _own(values: pa.Array) -> pa.Array:
    """Returns the same values; an empty slice is rebuilt, as arrow-rs rejects empty string slices with an offset."""
    return values if len(values) else pa.nulls(0, values.type)  # `pa.array` makes no dictionaries of views


def _variant_cast(source: pa.Field, at: str) -> _Cast:
    wanted = to_arrow_field(StructField(source.name, VARIANT))
    if pa.types.is_null(source.type):
        return lambda array: pa.nulls(len(array), wanted.type)
    type_ = source.type.storage_type if isinstance(source.type, pa.BaseExtensionType) else source.type
    names = {f.name: i for i, f in enumerate(type_)} if pa.types.is_struct(type_) else {}
    if set(names) != {"metadata", "value"} or not all(holds_bytes(f.type) for f in type_):
        raise UserError(
            "INCOMPATIBLE_TYPE",
            f"the column {at!r} is VARIANT, got {source.type}",
            hint="Pass JSON texts, or Variants (mica.variant.from_json, from_python).",
        )

    cast = primitive_cast(pa.binary())

    def run(array: pa.Array) -> pa.Array:
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        if storage.type == wanted.type:
            return storage
        # Children of a null row are null, which `not null` children may not be: any bytes will do under the mask.
        parts = _children(storage)
        columns = [_fill(cast(parts[names[name]]), storage, at) for name in ("metadata", "value")]
        mask = storage.is_null() if storage.null_count else None
        return pa.StructArray.from_arrays(columns, fields=list(wanted.type), mask=mask)

    return run


def _fill(child: pa.Array, parent: pa.Array, at: str) -> pa.Array:
    if child.null_count > parent.null_count:
        raise UserError("INVALID_VALUE", f"the variant column {at!r} has rows without metadata or value")
    return pc.fill_null(child, b"") if child.null_count else child


def check_nulls(array: pa.Array, f: pa.Field, at: str) -> None:
    """Checks NOT NULL, in structs too; children of a null struct are not checked."""
    if not f.nullable and array.null_count:
        raise UserError("NULL_IN_NOT_NULL_COLUMN", f"the column {at!r} is NOT NULL, got {array.null_count} nulls")
    if pa.types.is_struct(f.type) and not is_variant(f):
        inner = array.drop_null() if array.null_count else array
        wanted = [i for i, child in enumerate(f.type) if not child.nullable or pa.types.is_struct(child.type)]
        children = _children(inner) if wanted else []
        for i in wanted:
            check_nulls(children[i], f.type[i], f"{at}.{f.type[i].name}")


def _incompatible(source: pa.Field, target: StructField, at: str) -> UserError:
    return UserError(
        "INCOMPATIBLE_TYPE",
        f"the column {at!r} is {type_to_ddl(target.type)}, values of Arrow type {source.type} cannot be written to it",
        hint="Cast it first.",
    )


def _bad_value(at: str, why: str) -> UserError:
    what = f"a value of the column {at!r} does not fit: {why}"
    return UserError("INVALID_VALUE", what, condition="CAST_OVERFLOW_IN_TABLE_INSERT")
