"""Parses and prints Delta's schema JSON.

The rule: unknown content is kept. Metadata of fields and names of types are written as they were read; only a document
that is not a schema is rejected, or has a decimal that no value has.

Source: Delta protocol, "Schema Serialization Format".
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from mica.errors import CorruptDataError, UserError
from mica.schema.types import MAX_PRECISION, ArrayType, DataType, MapType, Primitive, StructField, StructType

_MAX_DEPTH = 200


def loads(text: str | bytes) -> StructType:
    """Reads `metaData.schemaString`."""
    try:
        # orjson is fast, but rejects numbers beyond 64 bits, which unknown metadata may hold.
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as e:
            raise _bad(f"it is not JSON: {e}") from e
    schema = _type(document, "", 0)
    if not isinstance(schema, StructType):
        raise _bad("its root is not a struct")
    return schema


def dumps(schema: StructType) -> str:
    """Prints the schema as Spark does: no spaces, keys in Spark's order."""
    return json.dumps(to_document(schema), separators=(",", ":"), ensure_ascii=False)


def to_document(type_: DataType) -> Any:
    """Returns the JSON document of a type as Python values."""
    match type_:
        case Primitive(name):
            return name
        case ArrayType(element, contains_null):
            return {"type": "array", "elementType": to_document(element), "containsNull": contains_null}
        case MapType(key, value, value_contains_null):
            return {
                "type": "map",
                "keyType": to_document(key),
                "valueType": to_document(value),
                "valueContainsNull": value_contains_null,
            }
        case StructType(fields):
            return {
                "type": "struct",
                "fields": [
                    {"name": f.name, "type": to_document(f.type), "nullable": f.nullable, "metadata": dict(f.metadata)}
                    for f in fields
                ],
            }
    raise TypeError(f"{type_!r} is not a type of a schema")


def _type(document: Any, at: str, depth: int) -> DataType:
    if depth > _MAX_DEPTH:
        raise _bad(f"it nests deeper than {_MAX_DEPTH} levels")
    if isinstance(document, str):
        plain = Primitive(document)
        if (ps := plain.decimal) is not None:
            if not 1 <= ps[0] <= MAX_PRECISION or not 0 <= ps[1] <= ps[0]:
                raise _bad(
                    f"the type of {at or 'the root'} is {document}, and no decimal is: its precision is 1 to "
                    f"{MAX_PRECISION}, its scale 0 to the precision"
                )
            return Primitive(f"decimal({ps[0]},{ps[1]})")
        return Primitive("decimal(10,0)") if document == "decimal" else plain
    if not isinstance(document, dict):
        raise _bad(f"the type of {at or 'the root'} is {document!r}")
    match document.get("type"):
        case "struct":
            fields = document.get("fields")
            if not isinstance(fields, list):
                raise _bad(f"the struct at {at or 'the root'} has no fields")
            return StructType(tuple(_field(f, at, depth) for f in fields))
        case "array":
            element = _type(document.get("elementType"), f"{at}.element", depth + 1)
            return ArrayType(element, _flag(document, "containsNull", at))
        case "map":
            key = _type(document.get("keyType"), f"{at}.key", depth + 1)
            value = _type(document.get("valueType"), f"{at}.value", depth + 1)
            return MapType(key, value, _flag(document, "valueContainsNull", at))
        case "udt":
            kind = document.get("pyClass") or document.get("class")
            raise UserError(
                "UNSUPPORTED_TYPE",
                f"the column {at!r} has a user-defined type of Spark's, {kind}, which mica does not have",
                hint="Write a plain column of it: of a vector, pyspark.ml.functions.vector_to_array.",
            )
        case other:
            raise _bad(f"the type of {at or 'the root'} is {other!r}")


def _field(document: Any, at: str, depth: int) -> StructField:
    if not isinstance(document, dict) or not isinstance(document.get("name"), str):
        raise _bad(f"a field of {at or 'the root'} has no name")
    name = document["name"]
    here = f"{at}.{name}" if at else name
    metadata = document.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise _bad(f"the metadata of {here} is not an object")
    return StructField(name, _type(document.get("type"), here, depth + 1), _flag(document, "nullable", here), metadata)


def _flag(document: dict[str, Any], name: str, at: str) -> bool:
    value = document.get(name, True)
    if not isinstance(value, bool):
        raise _bad(f"{name} of {at} is {value!r}")
    return value


def _bad(why: str) -> CorruptDataError:
    return CorruptDataError("INVALID_SCHEMA_JSON", f"the table's schema cannot be read: {why}")
