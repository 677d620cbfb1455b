"""The kernel's functions over batches: whole arrays in, whole arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from mica.variant.kernel.door import call, native
from mica.variant.kernel.request import Request
from mica.variant.shredding import Limits


def json_to_variant(
    batch: pa.RecordBatch, *, duplicate_keys: str = "error", max_size: int = 16 << 20, max_depth: int = 1000
) -> pa.RecordBatch:
    """Column 0, JSON texts, as the variant column `v`; nulls stay null."""
    return call(native.json_to_variant, batch, duplicate_keys=duplicate_keys, max_size=max_size, max_depth=max_depth)


def variant_to_json(batch: pa.RecordBatch, *, timezone: str = "UTC") -> pa.RecordBatch:
    """Column 0, an unshredded variant column, as the string column `json`, spelled as Spark's to_json."""
    return call(native.variant_to_json, batch, timezone=timezone)


def type_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Column 0, an unshredded variant column, as the string column `type`, as Spark's schema_of_variant."""
    return call(native.type_texts, batch)


def cast(batch: pa.RecordBatch, wanted: pa.DataType, *, timezone: str = "UTC") -> pa.RecordBatch:
    """Column 0, of a plain type, as `values` of the type asked for and the mask `failed`, by the rules of ANSI."""
    return call(native.cast, batch, wanted, timezone=timezone)


@lru_cache(maxsize=64)
def fixed_offset(timezone: str) -> int | None:
    """Seconds east of UTC of a zone that has one offset, None for others. Errors: UNKNOWN_TIME_ZONE."""
    return call(native.fixed_offset, timezone)


def without_late_types(batch: pa.RecordBatch, *, as_text: bool, timezone: str = "UTC") -> pa.RecordBatch:
    """Column 0, unshredded Variants, without times, timestamps in nanoseconds and UUIDs: they become texts, or the
    first one is an error with its row and path.
    """
    return call(native.without_late_types, batch, as_text=as_text, timezone=timezone)


def may_hold_late_types(batch: pa.RecordBatch) -> bool:
    """Whether a Variant of the batch, shredded or not, may hold a time, nanoseconds or a UUID; "no" is certain."""
    return call(native.may_hold_late_types, batch)


def calculate(batch: pa.RecordBatch, operator: str, precision: int, scale: int) -> pa.RecordBatch:
    """Columns 0 and 1, decimals, with + - * / or % between them: `values` of that precision and scale, and `failed`."""
    return call(native.calculate, batch, operator, precision, scale)


def validate(batch: pa.RecordBatch) -> None:
    """Raises for the first row of column 0 that is no sound Variant."""
    call(native.validate, batch)


def validate_nested(batch: pa.RecordBatch) -> None:
    """Raises for the first unshredded Variant inside a list or map that is malformed, with row and path."""
    call(native.validate_nested, batch)


def infer(batch: pa.RecordBatch, column: Sequence[str], limits: Limits) -> pa.DataType:
    """The shredding tree of an unshredded variant column, given by its names through structs."""
    return call(native.infer, batch, list(column), limits)


def shred(
    batch: pa.RecordBatch, trees: Mapping[tuple[str, ...], pa.DataType], *, early: bool = False
) -> pa.RecordBatch:
    """The batch with variant columns in storage layout, the standard or the early one; keys of `trees` are columns."""
    return call(native.shred, batch, dict(trees), early=early)


def fitting_schema(batch: pa.RecordBatch) -> pa.Schema:
    """The schema of early columns without the `untyped_value`s that no row of the batch needs."""
    return call(native.fitting_schema, batch)


def fit_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in such a schema. Errors: DOES_NOT_FIT, with path and row, for a value that has no place there."""
    return call(native.fit_batch, batch, schema)


def unshred(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every variant column unshredded."""
    return call(native.unshred, batch)


def extract(batch: pa.RecordBatch, requests: Sequence[Request], *, timezone: str = "UTC") -> pa.RecordBatch:
    """Columns and cast paths of a batch in either layout."""
    return call(native.extract, batch, list(requests), timezone=timezone)
