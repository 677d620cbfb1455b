"""Column mapping: whether a table uses it, and which names its files use.

The rule: columns are mapped if the protocol has the reader feature `columnMapping` and the property is
`name` or `id`. Otherwise files use the schema's names, even if its fields have mapping keys; `effective` removes those
keys, so that physical names from its schema are always correct.

Source: Delta protocol, "Column Mapping"; "Reader Requirements for Column Mapping".
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mica.errors import UnsupportedTableError, UserError
from mica.log.actions import Metadata, Protocol
from mica.log.own_names import OwnNames
from mica.properties import COLUMN_MAPPING_MODE, MAX_COLUMN_ID, Mode
from mica.schema import json as schema_json
from mica.schema.collations import COLLATIONS
from mica.schema.edit import fields_of, map_fields
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


def read_schema(schema_string: str, mode: Mode) -> StructType:
    """Reads `metaData.schemaString` as `effective`. Errors: INVALID_SCHEMA_JSON, also if two columns are one."""
    return _read(schema_string, mode)[0]


def id_twice(schema_string: str, mode: Mode) -> tuple[str, str] | None:
    """Two columns with one id in a table that is mapped by name: readers do not ask for ids, files must not have it."""
    return _read(schema_string, mode)[1] if mode == "name" else None


@lru_cache(maxsize=16)
def _read(schema_string: str, mode: Mode) -> tuple[StructType, tuple[str, str] | None]:
    """A table that is kept asks for the same text again and again."""
    own = OwnNames(mode)
    found = _without(schema_json.loads(schema_string), _KEYS if mode == "none" else frozenset(), own)
    assert isinstance(found, StructType)
    return found, own.twice


def effective(schema: StructType, mode: Mode) -> StructType:
    """Removes the keys of column mapping where they do not apply, and VOID columns, which are never stored
    and which readers must skip (PROTOCOL.md "Primitive Types").
    """
    found = _without(schema, _KEYS if mode == "none" else frozenset())
    assert isinstance(found, StructType)
    return found


def without_keys(schema: StructType) -> StructType:
    """The schema without the keys of column mapping, VOID columns included."""
    return map_fields(schema, lambda f: replace(f, metadata=_kept(f.metadata, _KEYS)))


def with_voids(type_: DataType, before: DataType) -> DataType:
    """The type with the VOID columns of an earlier one, behind the columns that they stood behind: they are in the
    schema of a table until it is replaced, though no reader is shown them.
    """
    match type_, before:
        case StructType(fields), StructType(earlier):
            known = {_lasting(f): f.type for f in earlier}
            names, taken = {_lasting(f) for f in fields}, {f.name.lower() for f in fields}
            behind: dict[str | None, list[StructField]] = {}
            last = None
            for old in earlier:
                if _lasting(old) in names:
                    last = _lasting(old)
                elif old.type == VOID and old.name.lower() not in taken:
                    behind.setdefault(last, []).append(old)
                    taken.add(old.name.lower())
            found = behind.get(None, [])
            for f in fields:
                own = replace(f, type=with_voids(f.type, known.get(_lasting(f), f.type)))
                found += [own, *behind.get(_lasting(f), [])]
            return StructType(tuple(found))
        case ArrayType(element), ArrayType(earlier_element):
            return replace(type_, element=with_voids(element, earlier_element))
        case MapType(key, value), MapType(earlier_key, earlier_value):
            return replace(type_, key=with_voids(key, earlier_key), value=with_voids(value, earlier_value))
    return type_


def _lasting(f: StructField) -> str:
    """The name that a column keeps: in files, else its own in any case."""
    return str(f.metadata.get(PHYSICAL_NAME, f.name.lower()))


def assigned(schema: StructType, last: int, *, keeps_names: bool) -> tuple[StructType, int]:
    """The schema with an id and a physical name for each field that lacks one, at any depth, and the highest id that a
    field ever had; `last` is the highest before. With `keeps_names` a new physical name is the field's own: files have
    it already. Otherwise it is random, so that a column never finds the values of a dropped one.
    """

    ids = [f.metadata.get(FIELD_ID) for f in fields_of(schema)]
    highest = max([last, *(i for i in ids if isinstance(i, int))])

    def of(f: StructField) -> StructField:
        nonlocal highest
        metadata = dict(f.metadata)
        if not isinstance(metadata.get(FIELD_ID), int):
            highest += 1
            metadata[FIELD_ID] = highest
        if PHYSICAL_NAME not in metadata:
            metadata[PHYSICAL_NAME] = f.name if keeps_names else f"col-{uuid.uuid4()}"
        return replace(f, metadata=metadata)

    return map_fields(schema, of), highest


def configured(
    before: Metadata | None, schema: StructType, configuration: Mapping[str, str], mode: Mode, was: Mode = "none"
) -> tuple[StructType, dict[str, str]]:
    """The schema and the properties of a table of this mode, after a change. `before` is None for a new table, `was`
    the mode that was in effect.

    Errors: INVALID_PROPERTY for a change of mode that would orphan the files.
    """
    if before is not None and mode != was and (was, mode) != ("none", "name"):
        raise UserError(
            "INVALID_PROPERTY",
            f"{COLUMN_MAPPING_MODE.name} is {was!r} and cannot become {mode!r}: files name columns otherwise",
            hint="An existing table can only go from 'none' to 'name'. drop_feature('columnMapping') goes back.",
        )
    if mode == "none":
        return schema, dict(configuration)
    last = 0 if before is None else MAX_COLUMN_ID.of(before.configuration)
    known = before is not None and was == "none" and schema_json.loads(before.schema_string).names == schema.names
    schema, highest = assigned(schema, last, keeps_names=known)
    return schema, {**configuration, MAX_COLUMN_ID.name: str(highest)}


def _without(type_: DataType, keys: frozenset[str], own: OwnNames | None = None) -> DataType:
    match type_:
        case StructType(fields):
            shown = [f for f in fields if f.type != VOID]
            if own is not None:
                own.check(shown)
            return StructType(
                tuple(replace(f, type=_without(f.type, keys, own), metadata=_metadata(f, keys)) for f in shown)
            )
        case ArrayType(element, contains_null):
            return ArrayType(_without(element, keys, own), contains_null)
        case MapType(key, value, value_contains_null):
            return MapType(_without(key, keys, own), _without(value, keys, own), value_contains_null)
    return type_


def _kept(metadata: Mapping[str, Any], without: frozenset[str]) -> Mapping[str, Any]:
    return {k: v for k, v in metadata.items() if k not in without} if without else metadata


def _metadata(f: StructField, keys: frozenset[str]) -> Mapping[str, Any]:
    """Returns the field's metadata without these keys, and its collations by display names; some writers of mapped
    tables use physical names there.
    """
    kept = _kept(f.metadata, keys)
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
