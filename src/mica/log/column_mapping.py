"""Whether a table maps its columns to other names, and by what its files know them.

The rule: a table maps columns where its protocol has the feature `columnMapping` for readers and its property says
`name` or `id`. Everywhere else the names in the schema are the names in files, whatever keys stand in its fields: so
`effective` takes these out, and whoever asks a schema for a physical name gets the right one.

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

#: Keys of field metadata that mean something in a mapped table alone.
_KEYS = frozenset((PHYSICAL_NAME, FIELD_ID, "delta.columnMapping.nested.ids", "parquet.field.nested.ids"))
_BY_NAME = 3  # reader versions from here on list their features


def mode_of(protocol: Protocol, metadata: Metadata) -> Mode:
    """How the table maps its columns. Errors: UNSUPPORTED_READER_FEATURE for a mode that nobody knows."""
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
    """The schema with the keys of column mapping only where they count, and without VOID columns, which nobody stores
    and readers are to skip (PROTOCOL.md "Primitive Types").
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
    """The field's metadata without these keys; its collations by display names, which some writers of mapped tables
    spell by physical ones.
    """
    kept = {k: v for k, v in f.metadata.items() if k not in keys} if keys else f.metadata
    physical, collations = kept.get(PHYSICAL_NAME), kept.get(COLLATIONS)
    if not isinstance(physical, str) or not isinstance(collations, Mapping):
        return kept
    spelled: dict[str, Any] = {}
    for place, text in collations.items():
        rest = str(place).removeprefix(physical)
        shown = f.name + rest if rest != place and rest[:1] in ("", ".") else place
        # Of two that contradict each other both stay, and whoever reads them refuses.
        spelled[place if spelled.get(shown, text) != text else shown] = text
    return {**kept, COLLATIONS: spelled}
