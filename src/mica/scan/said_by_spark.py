"""What Spark says of a file's columns beyond their Parquet types: it keeps its schema as JSON in the footer.

The rule: a group that Spark calls a Variant is one, also without the annotation, which Spark 4.0 does not write, if it
has `metadata` and `value`; and strings have the collation that Spark gave them. All else is as the Parquet types say:
who copies a footer may have changed the columns.

Source: Spark's `ParquetFileFormat.readSchemaFromFooter`.
"""

from __future__ import annotations

from dataclasses import replace

from mica.errors import MicaError
from mica.schema.collations import COLLATIONS, of_field
from mica.schema.json import loads
from mica.schema.types import BINARY, VARIANT, ArrayType, DataType, MapType, StructField, StructType

#: The key of the footer.
SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
#: The fields of a Variant.
_PARTS = {("metadata", BINARY), ("value", BINARY)}


def as_spark_says(schema: StructType, text: str | None) -> StructType:
    """The columns of a file, whose footer has this text of Spark's."""
    if text is None:
        return schema
    try:
        return _fields(schema, loads(text))
    except MicaError:  # a type of Spark's that no table has, or no text of Spark's
        return schema


def _fields(own: StructType, said: StructType) -> StructType:
    known = {f.name: f for f in said.fields}
    return StructType(tuple(_field(f, known[f.name]) if f.name in known else f for f in own.fields))


def _field(own: StructField, said: StructField) -> StructField:
    found = replace(own, type=_type(own.type, said.type))
    collated = found.with_metadata({COLLATIONS: said.metadata.get(COLLATIONS)})
    try:
        return collated if of_field(collated) else found
    except MicaError:  # of a column that has another name or type now
        return found


def _type(own: DataType, said: DataType) -> DataType:
    match own, said:
        case StructType(), _ if said == VARIANT:
            return VARIANT if {(f.name, f.type) for f in own.fields} >= _PARTS else own
        case StructType(), StructType():
            return _fields(own, said)
        case ArrayType(), ArrayType():
            return replace(own, element=_type(own.element, said.element))
        case MapType(), MapType():
            return replace(own, key=_type(own.key, said.key), value=_type(own.value, said.value))
    return own
