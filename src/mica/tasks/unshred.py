"""Reconstructs Variants that are given in shredded form, before they are written.

The rule: written Variants are validated. Rows may be in the storage layout of a Parquet file (`struct<metadata, value,
typed_value>`, as pyarrow reads one). The kernel reconstructs them, refuses violations of the layout, and shreds them
again as the table needs.

Source: Parquet "VariantShredding", "Reconstructing a Shredded Variant".
"""

from __future__ import annotations

import pyarrow as pa

from mica.schema.arrow import EXTENSION_KEY, VARIANT_EXTENSION, is_list
from mica.schema.types import VARIANT, ArrayType, DataType, MapType, StructType
from mica.variant import kernel


def unshredded(batch: pa.RecordBatch, table: StructType) -> pa.RecordBatch:
    """The batch with every shredded Variant, at any depth, as `struct<metadata, value>`; `table` says which columns are
    Variants. Errors: MALFORMED_SHREDDING, MALFORMED_VARIANT with row and path, UNSUPPORTED_TYPE.
    """
    columns, fields = list(batch.columns), list(batch.schema)
    changed = False
    for i, f in enumerate(fields):
        marked = _of_column(f, table)
        if marked is not None:
            column = columns[i].storage if isinstance(columns[i], pa.ExtensionArray) else columns[i]
            if column.type != marked.type:  # Arrow's cast breaks slices of runs, even to their own type
                column = column.cast(marked.type)
            made = kernel.unshred(pa.record_batch([column], schema=pa.schema([marked])))
            columns[i], fields[i], changed = made.column(0), made.schema.field(0), True
    return batch if not changed else pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def unshredded_schema(schema: pa.Schema, table: StructType) -> pa.Schema:
    """The schema of `unshredded` batches of this schema."""
    for i, f in enumerate(schema):
        if (marked := _of_column(f, table)) is not None:
            schema = schema.set(i, kernel.unshredded_schema(pa.schema([marked])).field(0))
    return schema


def _of_column(f: pa.Field, table: StructType) -> pa.Field | None:
    """What `_marked` gives for a field that may be a column of the table, of its storage if it is an extension's."""
    wanted = table.find(f.name)
    stored = f.type.storage_type if isinstance(f.type, pa.BaseExtensionType) else f.type
    return None if wanted is None else _marked(f.with_type(stored), wanted.type)


def _marked(f: pa.Field, type_: DataType) -> pa.Field | None:
    """The field with the extension's name on the shredded Variants in it; None where there is none."""
    match type_:
        case StructType() if pa.types.is_struct(f.type):
            children = list(f.type)
            found = [(c, type_.find(c.name)) for c in children]
            marked = [None if wanted is None else _marked(c, wanted.type) for c, wanted in found]
            inside = pa.struct([m or c for m, c in zip(marked, children, strict=True)])
            return f.with_type(inside) if any(marked) else None
        case ArrayType(element) if is_list(f.type):
            inner = _marked(f.type.value_field, element)
            return None if inner is None else f.with_type(pa.list_(inner))
        case MapType(value=value) if pa.types.is_map(f.type):
            inner = _marked(f.type.item_field, value)
            return None if inner is None else f.with_type(pa.map_(f.type.key_field, inner))
        case _ if type_ == VARIANT and pa.types.is_struct(f.type) and f.type.get_field_index("typed_value") >= 0:
            return f.with_metadata({**(f.metadata or {}), EXTENSION_KEY: VARIANT_EXTENSION})
    return None
