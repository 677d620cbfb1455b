"""The kernel's functions over batches: whole arrays in, whole arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa

from mica.variant.kernel.door import call, native
from mica.variant.kernel.request import Request
from mica.variant.shredding import Limits

Edit = Literal["set", "insert", "append", "delete", "strip_nulls"]

#: Rows that the kernel made and keeps, with pyarrow's names for what both can do. pyarrow gets them by `to_arrow`, but
#: what comes back from it is validated again, every text of it.
Batch = native.Batch

#: What a file is written from.
Rows: TypeAlias = pa.RecordBatch | Batch
#: Rows of either kind, of which the same kind is made.
R = TypeVar("R", pa.RecordBatch, native.Batch)


def arrow(rows: Rows) -> pa.RecordBatch:
    """Returns the rows for pyarrow, whose arrays are made of them."""
    return rows.to_arrow() if isinstance(rows, Batch) else rows


def taken(rows: Rows) -> Batch:
    """Returns the rows for the kernel, which validates those of pyarrow once."""
    return rows if isinstance(rows, Batch) else call(Batch, rows)


def json_to_variant(
    batch: pa.RecordBatch, *, duplicate_keys: str = "error", max_size: int = 16 << 20
) -> pa.RecordBatch:
    """Parses column 0, JSON texts, to the variant column `v`; nulls stay null."""
    return call(native.json_to_variant, batch, duplicate_keys=duplicate_keys, max_size=max_size)


def try_json_to_variant(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Parses column 0, JSON texts, as Spark's parse_json: the variant column `v`, and the mask `failed`."""
    return call(native.try_json_to_variant, batch)


def edit(
    batch: pa.RecordBatch, name: Edit, paths: Sequence[tuple[str | int, ...]], *, flag: bool = True
) -> pa.RecordBatch:
    """Changes column 0, unshredded Variants, at paths of keys and positions; column 1 holds the new values, where the
    edit takes one. `flag` is whether `set` creates what is missing, and `strip_nulls` looks into arrays. Returns the
    variant column `v` and the mask `failed` of rows in which the path leads through a value of another type, or is
    taken."""
    return call(native.edit_variants, batch, name, list(paths), flag=flag)


def traces(batch: pa.RecordBatch, path: tuple[str | int, ...]) -> pa.RecordBatch:
    """Where a path stands in column 0, unshredded Variants: `value`, whether it leads to a value, and `name`, whether
    the metadata holds its last key although no field of the row has it."""
    return call(native.traces, batch, path)


def variant_to_json(batch: pa.RecordBatch, *, timezone: str = "UTC") -> pa.RecordBatch:
    """Formats column 0, an unshredded variant column, as the string column `json`, as Spark's to_json does."""
    return call(native.variant_to_json, batch, timezone=timezone)


def type_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the types in column 0, an unshredded variant column, as the string column `type` (schema_of_variant)."""
    return call(native.type_texts, batch)


def cast(batch: pa.RecordBatch, wanted: pa.DataType, *, timezone: str = "UTC") -> pa.RecordBatch:
    """Casts column 0, of a plain type, by the rules of ANSI; returns `values` of that type and the mask `failed`."""
    return call(native.cast, batch, wanted, timezone=timezone)


@lru_cache(maxsize=64)
def fixed_offset(timezone: str) -> int | None:
    """Returns a zone's offset in seconds east of UTC if it has only one, else None. Errors: UNKNOWN_TIME_ZONE."""
    return call(native.fixed_offset, timezone)


def without_late_types(batch: pa.RecordBatch, *, as_text: bool, timezone: str = "UTC") -> pa.RecordBatch:
    """Replaces times, timestamps in nanoseconds and UUIDs in column 0, unshredded Variants, by texts; without
    `as_text` the first one is an error with its row and path.
    """
    return call(native.without_late_types, batch, as_text=as_text, timezone=timezone)


def may_hold_late_types(batch: Rows) -> bool:
    """Whether a Variant of the batch, shredded or not, may hold a time, nanoseconds or a UUID; False is certain."""
    return call(native.may_hold_late_types, batch)


def calculate(batch: pa.RecordBatch, operator: str, precision: int, scale: int) -> pa.RecordBatch:
    """Applies + - * / or % to columns 0 and 1, decimals: returns `values` of that precision and scale, and `failed`."""
    return call(native.calculate, batch, operator, precision, scale)


def stats_leaves(texts: pa.Array, leaves: Sequence[tuple[Sequence[str], pa.DataType | str]]) -> pa.RecordBatch:
    """Reads leaves of statistics, JSON texts: a column for each leaf, given by its keys and its type, or by the path of
    a Variant whose bounds are wanted: a struct of kind (0: no bound), int, real, text, unscaled and scale, whose kind
    says which has the value.

    A value that is missing, or does not fit the type exactly, is null; so are all of a text that is no JSON object.
    """
    return call(native.stats_leaves, _column(texts), [(list(keys), kind) for keys, kind in leaves])


def all_bounds(texts: pa.Array) -> pa.RecordBatch:
    """Reads the bounds of all Variant paths in z85 texts, one row each: its text's row, path, kind, int, real, text,
    unscaled and scale.
    """
    return call(native.all_bounds, _column(texts))


def bounds_variants(texts: pa.Array) -> pa.StructArray:
    """Returns bounds, z85 texts, as Variants of metadata and value; null for damaged texts."""
    return call(native.bounds_variants, _column(texts)).column(0)


def decode_z85(texts: pa.Array) -> pa.Array:
    """Decodes z85 texts to binary; null for other texts."""
    return call(native.decode_z85, _column(texts)).column(0)


def encode_z85(values: pa.Array) -> pa.Array:
    """Encodes binary values as z85 texts."""
    return call(native.encode_z85, _column(values)).column(0)


def _column(values: pa.Array) -> pa.RecordBatch:
    return pa.record_batch([values], names=["values"])


def validate(batch: pa.RecordBatch) -> None:
    """Raises for the first row of column 0 that is not a valid Variant."""
    call(native.validate, batch)


def settle_nested(batch: Rows) -> Rows:
    """Returns the rows with the keys of objects in order, of unshredded Variants inside lists and maps. Raises for the
    first of them that is malformed, with row and path."""
    found = call(native.settle_nested, batch)
    return batch if found is None else found


class Left(NamedTuple):
    """A path that did not become a typed column: its steps (None: elements of an array), why (`types`, `keys`, `rare`,
    `arrays`, `depth`, `empty`, `rule`, `most`), the number of the rule."""

    path: Sequence[str | None]
    why: str
    rule: int | None


class Inferred(NamedTuple):
    """A shredding tree, and the paths that did not become typed columns, those in the most rows first."""

    tree: pa.DataType
    left: Sequence[Left]


def infer(batch: pa.RecordBatch, column: Sequence[str], limits: Limits) -> Inferred:
    """Infers the shredding tree of an unshredded variant column, given by its names through structs."""
    tree, left = call(native.infer, batch, list(column), limits)
    return Inferred(tree, [Left(*one) for one in left])


def steer(tree: pa.DataType, limits: Limits) -> pa.DataType:
    """The tree of a file as the rules of the limits leave it: what they skip goes, what they give a type gets it."""
    return call(native.steer, tree, limits)


def shred(batch: R, trees: Mapping[tuple[str, ...], pa.DataType], *, early: bool = False) -> R:
    """Shreds variant columns into the storage layout, the standard or the early one; keys of `trees` are columns."""
    return call(native.shred, batch, dict(trees), early=early)


def fitting_schema(batch: pa.RecordBatch) -> pa.Schema:
    """Returns the schema of early columns without the `untyped_value`s that no row of the batch needs."""
    return call(native.fitting_schema, batch)


def fit_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Casts the batch to such a schema. Errors: DOES_NOT_FIT, with path and row, for a value that it cannot hold."""
    return call(native.fit_batch, batch, schema)


def unshred(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the batch with every variant column unshredded."""
    return call(native.unshred, batch)


def unshredded_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema that `unshred` gives batches of this one."""
    return call(native.unshredded_schema, schema)


def extract(batch: pa.RecordBatch, requests: Sequence[Request], *, timezone: str = "UTC") -> pa.RecordBatch:
    """Extracts columns and cast paths from a batch in either layout."""
    return call(native.extract, batch, list(requests), timezone=timezone)
