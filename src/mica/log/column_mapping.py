"""Column mapping: whether a table uses it, and which names its files use.

The rule: columns are mapped if the protocol has the reader feature `columnMapping` and the property is
`name` or `id`. Otherwise files use the schema's names, even if its fields have mapping keys; `effective` removes those
keys, so that physical names from its schema are always correct.

Source: Delta protocol, "Column Mapping"; "Reader Requirements for Column Mapping".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mica.errors import UnsupportedTableError
from mica.log.actions import Metadata, Protocol
from mica.properties import COLUMN_MAPPING_MODE, Mode
from mica.schema.collations import COLLATIONS
from mica.schema.types import VOID, ArrayType, DataType, MapType, StructField, StructType
from mica.stats.columns import FIELD_ID, PHYSICAL_NAME

#: Keys of field metadata that are used only in a mapped table.
_KEYS = frozenset((PHYSICAL_NAME, FIELD_ID, "delta.columnMapping.nested.ids", "parquet.field.nested.ids"))
_BY_NAME = 3  # from this reader version on, protocols list their features


def mode_of(protocol: Protocol, metadata: Metadata) -> Mode:
    """Returns the table's mapping mode. Errors: UNSUPPORTED_READER_FEATURE for an unknown mode."""
    has = protocol.reader == 2 or (protocol.reader >= _BY_NAME and "columnMapping" in protocol.reader_features)
    mode = COLUMN_MAPPING_MODE.of(metadata.configuration) if has else "none"
    if mode == "unknown":
        name = COLUMN_MAPPING_MODE.name
        raise UnsupportedTableError(
            "UNSUPPORTED_READER_FEATURE",
            f"the table maps its columns by {metadata.configuration[name]!r} ({name}), which mica does not know",
            hint="Use a newer version of mica, or another engine.",
            feature="columnMapping",
        )
    return mode


def effective(schema: StructType, mode: Mode) -> StructType:
    """Removes the keys of column mapping where they do not apply, and VOID columns, which are never stored
    and which readers must skip (PROTOCOL.md "Primitive Types").
    """
    found = _without(schema, _KEYS if mode == "none" else frozenset())
    assert isinstance(found, StructType)
    return found


def _without(type_: DataType, keys: frozenset[str]) -> DataType:
    match type_:
        case StructType(fields):
            return StructType(
                tuple(
                    replace(f, type=_without(f.type, keys), metadata=_metadata(f, keys))
                    for f in fields
                    if f.type != VOID
                )
            )
        case ArrayType(element, contains_null):
            return ArrayType(_without(element, keys), contains_null)
        case MapType(key, value, value_contains_null):
            return MapType(_without(key, keys), _without(value, keys), value_contains_null)
    return type_


def _metadata(f: StructField, keys: frozenset[str]) -> Mapping[str, Any]:
    """Returns the field's metadata without these keys, and its collations by display names; some writers of mapped
    tables use physical names there.
    """
    kept = {k: v for k, v in f.metadata.items() if k not in keys} if keys else f.metadata
    physical, collations = kept.get(PHYSICAL_NAME), kept.get(COLLATIONS)
    if not isinstance(physical, str) or not isinstance(collations, Mapping):
        return kept
    spelled: dict[str, Any] = {}
    for place, text in collations.items():
        rest = str(place).removeprefix(physical)
        shown = f.name + rest if rest != place and rest[:1] in ("", ".") else place
        # If two keys contradict each other both stay, and the reader of the collations raises.
        spelled[place if spelled.get(shown, text) != text else shown] = text
    return {**kept, COLLATIONS: spelled}
