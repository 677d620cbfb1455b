"""Functions of Variants: JSON texts read, values changed at a path, types shown.

The rule: the kernel evaluates whole arrays. A path is a constant, which is checked when the expression is bound. A path
that leads through a value of another type is an error, or null in the `try_` form; that of `variant_delete` removes
nothing then.

Source: Spark 4.3's ToVariantObject, ParseJson, VariantSet, VariantInsert, VariantArrayAppend, VariantDelete and
VariantStripNulls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import scalar
from mica.expressions.compare import Datum
from mica.expressions.pairs import as_array
from mica.expressions.plain_values import Made
from mica.expressions.signatures import Asked, Signature
from mica.schema.arrow import variant_field
from mica.schema.types import VARIANT, ArrayType, DataType, Primitive, StructType
from mica.variant import kernel
from mica.variant.path import VariantPath
from mica.variant.values import to_json as json_texts

#: The encoding of a JSON null: a primitive of type 0. Source: Parquet "VariantEncoding", "Value Data for Primitives".
_NULL = b"\x00"


#: The functions whose other constant texts are paths; those of `ROOTLESS` refuse the root.
ROOTLESS = frozenset(("variant_set", "variant_insert", "try_variant_set", "try_variant_insert", "variant_delete"))
PATHS = ROOTLESS | {"variant_array_append", "try_variant_array_append"}


def of_nested(asked: Asked) -> Signature | None:
    """The types of to_variant_object."""
    (given,) = asked.types
    return ((given,), VARIANT) if not isinstance(given, Primitive) and _plain(given) else None


def _plain(type_: DataType) -> bool:
    match type_:
        case StructType(fields):
            names = [f.name for f in fields]
            distinct = len(set(names)) == len(names) and {*names} != {"metadata", "value"}
            return distinct and all(_plain(f.type) for f in fields)
        case ArrayType(element):
            return _plain(element)
    return isinstance(type_, Primitive) and type_ != VARIANT


def put(edit: kernel.Edit) -> Callable[..., Made]:
    """Returns the function that puts a value at a path."""

    def found(values: pa.Array, path: Datum, new: Datum, flag: Datum = None) -> Made:
        create = flag is None or flag.as_py()
        if create is None or not path.is_valid:
            return pa.nulls(len(values), values.type), None
        batch = pa.record_batch([values, as_array(new, len(values))], names=["v", "new"])
        made = kernel.edit(batch, edit, [VariantPath.parse(path.as_py()).steps], flag=create)
        return _made(made)

    return found


def delete(values: pa.Array, *paths: Datum) -> pa.Array:
    """Removes the values at the paths, one path after the other; null paths are skipped."""
    steps = [VariantPath.parse(path.as_py()).steps for path in paths if path.is_valid]
    return kernel.edit(pa.record_batch([values], names=["v"]), "delete", steps).column(0)


def strip_nulls(values: pa.Array, arrays: Datum = None) -> pa.Array:
    """Removes the fields that are null, at any depth, and the elements, unless `arrays` is false."""
    if arrays is not None and not arrays.is_valid:
        return pa.nulls(len(values), values.type)
    flag = arrays is None or arrays.as_py()
    return kernel.edit(pa.record_batch([values], names=["v"]), "strip_nulls", [], flag=flag).column(0)


def parse_json(texts: pa.Array) -> Made:
    """Reads JSON texts as Spark does: text after a document is ignored."""
    return _made(kernel.try_json_to_variant(pa.record_batch([texts], names=["json"])))


def tried(function: Callable[..., Made]) -> Callable[..., pa.Array]:
    """Returns the function without its errors: null instead."""

    def found(*args: Datum, **more: Any) -> pa.Array:
        return function(*args, **more)[0]

    return found


def get(values: pa.Array, path: pa.Scalar) -> pa.Array:
    """Returns the Variants at a path."""
    asked = kernel.Request(("v",), path=VariantPath.parse(path.as_py()).steps)
    return kernel.extract(pa.record_batch([values], schema=pa.schema([variant_field("v")])), [asked]).column(0)


def is_null(values: Datum) -> pa.Array:
    """Whether the value is a JSON null; false for a missing one."""
    stored = values.type.field("value").type
    return pc.fill_null(pc.equal(pc.struct_field(values, "value"), scalar(_NULL, stored)), False)


def schema_of(values: Datum) -> pa.Array:
    """Returns the type of each value as text."""
    return kernel.type_texts(pa.record_batch([values], names=["v"])).column(0)


def to_json(values: Datum, timezone: str) -> pa.Array:
    """Returns the values as JSON texts, which may be what came of the kernel."""
    if pa.types.is_string(values.type):
        return values
    return json_texts(values, timezone=timezone)


def _made(batch: Any) -> Made:
    values, failed = batch.columns
    return values, failed if failed.true_count else None
