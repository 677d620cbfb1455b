"""Converts batches to the form that Spark accepts from a Python function.

The rule: values do not change. Types that Spark's Variants lack (time, nanoseconds, UUID) are refused with their path,
since Spark would fail without one, or become texts if the caller wants that. Variants are `struct<metadata, value>` in
mica and `struct<value, metadata>` for Spark, which matches fields by position (docs/decisions.md, "Spark");
dictionaries, which Spark cannot read, are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.engines.spark import decimals
from mica.errors import UserError
from mica.records import dataclass
from mica.schema.lists import with_offsets
from mica.schema.types import VARIANT, ArrayType, DataType, MapType, StructType
from mica.variant import kernel

_SPARK_VARIANT = pa.struct(
    [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, {b"variant": b"true"})]
)


@dataclass(frozen=True)
class Late:
    """What to do with types that Spark's Variants lack, and the time zone of their texts."""

    as_text: bool = False
    timezone: str = "UTC"


REFUSED = Late()


@dataclass(frozen=True)
class ForSpark:
    """A task whose batches are converted for Spark; `numbers` are decimals that cross as such."""

    task: Callable[[Any], Iterable[pa.RecordBatch]]
    schema: StructType
    late: Late = REFUSED
    numbers: decimals.Short = field(default_factory=dict, hash=False)

    def __call__(self, given: Any) -> Iterator[pa.RecordBatch]:
        """The batches of a task."""
        for batch in self.task(given):
            yield decimals.as_numbers(for_spark(batch, self.schema, self.late), self.numbers)


def for_spark(batch: pa.RecordBatch, schema: StructType, late: Late = REFUSED) -> pa.RecordBatch:
    """The batch (already in `schema`) in the form that Spark accepts. Errors: UNSUPPORTED_BY_SPARK."""
    arrays = [_for_spark(c, f.type, f.name, late) for c, f in zip(batch.columns, schema.fields, strict=True)]
    fields = [pa.field(f.name, a.type, f.nullable) for f, a in zip(schema.fields, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _filled(array: pa.Array) -> pa.Array:
    # The children of a null variant may be null, but Spark's type has them as not null.
    array = _plain(array).cast(pa.binary())
    return array if array.null_count == 0 else pc.fill_null(array, b"")


def _for_spark(array: pa.Array, type_: DataType, at: str, late: Late) -> pa.Array:
    match type_:
        case StructType(fields):
            # `field` ignores the parent's nulls, which the mask restores; it respects slices.
            children = [_for_spark(array.field(i), f.type, f"{at}.{f.name}", late) for i, f in enumerate(fields)]
            inner = [pa.field(f.name, c.type, f.nullable) for f, c in zip(fields, children, strict=True)]
            return pa.StructArray.from_arrays(children, fields=inner, mask=_mask(array))
        case ArrayType(element, contains_null) if _holds_struct(element):
            offsets, array = with_offsets(array)
            values = _for_spark(array.values, element, f"{at}.element", late)
            wanted = pa.list_(pa.field("element", values.type, contains_null))
            return pa.ListArray.from_arrays(offsets, values, type=wanted)
        case MapType(key, value, value_contains_null) if _holds_struct(key) or _holds_struct(value):
            offsets, array = with_offsets(array)
            keys = _for_spark(array.keys, key, f"{at}.key", late)
            items = _for_spark(array.items, value, f"{at}.value", late)
            wanted = pa.map_(pa.field("key", keys.type, False), pa.field("value", items.type, value_contains_null))
            return pa.MapArray.from_arrays(offsets, keys, items, type=wanted)
    if type_ == VARIANT:
        array = _without_late_types(array, at, late)
        children = [_filled(array.field("value")), _filled(array.field("metadata"))]
        return pa.StructArray.from_arrays(children, fields=list(_SPARK_VARIANT), mask=_mask(array))
    return _plain(array)


def _without_late_types(array: pa.Array, at: str, late: Late) -> pa.Array:
    batch = pa.record_batch([_plain(array)], names=["v"])
    try:
        return kernel.without_late_types(batch, as_text=late.as_text, timezone=late.timezone).column(0)
    except UserError as e:
        raise UserError(
            "UNSUPPORTED_BY_SPARK",
            f"in a value of {at}, {e.message}: Spark's Variants do not have this type",
            hint="Read it in process, or as text with to_df(unsupported='string').",
            column=at,
            path=e.context.get("path"),
        ) from None


def _holds_struct(type_: DataType) -> bool:
    match type_:
        case ArrayType(element):
            return _holds_struct(element)
        case MapType(key, value):
            return _holds_struct(key) or _holds_struct(value)
        case _:
            return isinstance(type_, StructType) or type_ == VARIANT


def _plain(array: pa.Array) -> pa.Array:
    """The array without dictionary, run ends or extension."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    return array


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
