"""The protocol and properties of a new or altered table.

The rule: the smallest protocol that the schema and the properties need, with final feature names. A VARIANT column
adds `variantType`; a new table also gets `variantShredding` with `delta.enableVariantShredding=true` unless the caller
overrides it. On an existing table only the caller turns that property on (delta-variant-shredding.md, "Writer
Requirements for Variant Shredding"). Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from mica import properties
from mica.errors import UserError
from mica.expressions import typed_paths
from mica.log import features, feed, row_tracking
from mica.log.actions import Metadata, Protocol
from mica.log.column_mapping import configured, effective, mode_of, read_schema, with_voids, without_keys
from mica.log.configuration import checked, kept, needed_features, refuse_writers
from mica.schema import char, collations, special
from mica.schema import json as schema_json
from mica.schema.ddl import type_to_ddl
from mica.schema.edit import places
from mica.schema.interval_types import is_interval
from mica.schema.types import (
    VARIANT,
    VOID,
    ArrayType,
    MapType,
    Primitive,
    StructType,
    contains,
    refuse_twice,
    variant_columns,
    walk,
)
from mica.stats.named import check_columns, check_paths, parse_paths
from mica.variant.steering import Steering

TIMESTAMP_NTZ = Primitive("timestamp_ntz")

#: Raises UserError for a property's text that a schema and its partition columns do not allow.
_Check = Callable[[str, StructType, Collection[str]], None]


def schema_features(schema: StructType) -> set[str]:
    """Returns the table features that a schema needs by its types and field metadata."""
    needed = set()
    if contains(schema, VARIANT):
        needed.add("variantType")
    if contains(schema, TIMESTAMP_NTZ):
        needed.add("timestampNtz")
    if next(collations.walk_collated(schema), None) is not None:
        needed.add("collations")
    for _, column in walk(schema):
        needed |= {feature for key, feature in special.FEATURES.items() if key in column.metadata}
        if not column.nullable:
            needed.add("invariants")
    return needed


def refuse_columns(schema: StructType) -> None:
    """Rejects columns that no file can hold, at any depth: of type VOID or of an interval, a struct without fields, two
    of one name, or with a NUL in their name, which would end the name in Arrow's C interface.
    """
    for at, type_, _, _ in places(schema):
        if type_ == VOID or is_interval(type_):
            raise UserError(
                "UNSUPPORTED_TYPE",
                f"the column {at!r} is {type_to_ddl(type_)}, which cannot be stored",
                hint="Give it a type, or leave it out." if type_ == VOID else "Cast it to BIGINT or STRING.",
                column=at,
            )
        if type_ == StructType() and at:
            raise UserError(
                "UNSUPPORTED_TYPE",
                f"the column {at!r} is a STRUCT without fields, and Parquet has no empty groups",
                hint="Give it a field, or leave it out.",
                column=at,
            )
        if "\0" in at:
            raise UserError("INVALID_NAME", f"the column {at!r} has a NUL in its name", column=at)
        if isinstance(type_, StructType):
            refuse_twice(type_.names)


def new_table(
    schema: StructType,
    partition_columns: Iterable[str],
    configuration: Mapping[str, str | None] | None,
    *,
    created_time: int,
) -> tuple[Protocol, Metadata]:
    """Returns protocol and metadata of a new table. `created_time` in ms since the epoch."""
    given = checked(configuration or {})  # copied from another table, perhaps
    wanted = {k: text for k, text in given.items() if text is not None and k not in properties.NAMES_OF_WRITERS}
    refuse_columns(schema)
    schema = collations.normalized(effective(schema, "none"))
    columns = partition_columns_of(schema, list(partition_columns))
    needed = schema_features(schema)
    if "variantType" in needed:
        wanted.setdefault(properties.ENABLE_SHREDDING.name, "true")
    needed |= needed_features(wanted)
    _check_columns(wanted, schema, columns)
    schema, configuration = configured(None, schema, kept(wanted), properties.COLUMN_MAPPING_MODE.of(wanted))
    configuration |= row_tracking.columns(configuration)
    metadata = Metadata.new(schema_json.dumps(schema), columns, configuration, created_time=created_time)
    metadata = replace(metadata, description=wanted.get(properties.COMMENT))
    protocol = features.minimal_protocol(needed)
    features.check_write(protocol, metadata, "the new table")
    return protocol, metadata


def altered(
    protocol: Protocol,
    metadata: Metadata,
    *,
    schema: StructType | None = None,
    partition_columns: Iterable[str] | None = None,
    changes: Mapping[str, str | None] | None = None,
) -> tuple[Protocol, Metadata]:
    """Returns protocol and metadata of a table with another schema, other partition columns or other properties (None
    removes one). The protocol gains the features that the change needs and never loses any."""
    changes = checked(changes or {})
    refuse_writers(changes, metadata.configuration)
    needed = needed_features({name: text for name, text in changes.items() if text is not None})
    changed = metadata.with_configuration(kept(changes))
    if properties.COMMENT in changes:
        changed = replace(changed, description=changes[properties.COMMENT])
    changed = changed.with_configuration(row_tracking.columns(changed.configuration))
    if schema is not None:
        schema = char.restated(schema)
        refuse_columns(schema)
        schema = collations.normalized(effective(schema, mode_of(protocol, metadata)))
        needed |= schema_features(schema)
    newer = features.upgraded(protocol, needed)
    was, mode = mode_of(protocol, metadata), mode_of(newer, changed)
    if schema is not None or mode != was:
        if schema is None:
            schema = read_schema(metadata.schema_string, was)
        if partition_columns is None:  # another one has a schema of its own
            before = schema_json.loads(metadata.schema_string)
            found = with_voids(schema, without_keys(before) if was == "none" else before)
            assert isinstance(found, StructType)
            schema = found
        schema, configuration = configured(metadata, schema, changed.configuration, mode, was)
        changed = replace(changed, schema_string=schema_json.dumps(schema), configuration=configuration)
    columns = schema if schema is not None else schema_json.loads(metadata.schema_string)
    if partition_columns is not None:
        changed = replace(changed, partition_columns=tuple(partition_columns_of(columns, list(partition_columns))))
    asked = changed.configuration if schema is not None else changes
    _check_columns(asked, columns, changed.partition_columns, metadata if schema is not None else None)
    return newer, changed


def shreds(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether a writer may shred variants in this table: it has the feature, and the property is exactly
    `true`."""
    return properties.ENABLE_SHREDDING.of(metadata.configuration) and features.supports(protocol, "variantShredding")


def _check_columns(
    configuration: Mapping[str, str | None],
    schema: StructType,
    partitions: Collection[str],
    before: Metadata | None = None,
) -> None:
    """Checks that the columns named in properties exist, and that the change data feed can add its own. A property that
    was wrong `before`, under the old schema, stays as it is: a later version of mica may have set it. So do typed
    paths: those that a table outgrows are left out where they are read.
    """
    for name, check in _CHECKS.items():
        text = configuration.get(name)
        error = None if text is None else _wrong(check, text, schema, partitions)
        if error is not None and not _may_stay(name, text, before):
            raise error
    if properties.ENABLE_CHANGE_DATA.of({name: text for name, text in configuration.items() if text is not None}):
        feed.refuse_reserved(schema)


def _may_stay(name: str, text: str | None, before: Metadata | None) -> bool:
    """Whether a table keeps a property that is wrong."""
    if before is None or before.configuration.get(name) != text:
        return False
    return name == properties.TYPED_PATHS.name or _was_wrong(name, before)


def outlived(before: Metadata, schema: StructType, partitions: Collection[str]) -> Iterator[str]:
    """The properties that name columns or paths of a table which it loses with another schema."""
    for name, check in _CHECKS.items():
        text = before.configuration.get(name)
        if text is not None and _wrong(check, text, schema, partitions) and not _was_wrong(name, before):
            yield name


def _was_wrong(name: str, before: Metadata) -> bool:
    schema = schema_json.loads(before.schema_string)
    return _wrong(_CHECKS[name], before.configuration[name], schema, before.partition_columns) is not None


def _wrong(check: _Check, text: str, schema: StructType, partitions: Collection[str]) -> UserError | None:
    """What is wrong with the text of a property."""
    try:
        check(text, schema, partitions)
    except UserError as error:
        return error
    return None


def _check_rules(text: str, schema: StructType, _: Collection[str]) -> None:
    Steering.parse(text).check_columns(variant_columns(schema))


def _check_typed_paths(text: str, schema: StructType, _: Collection[str]) -> None:
    typed_paths.check(text, schema)


#: How the properties that name columns and paths are checked, against a schema and its partition columns.
_CHECKS: Mapping[str, _Check] = {
    properties.VARIANT_STATS_NAMES.name: partial(check_paths, properties.VARIANT_STATS_NAMES.name),
    properties.BLOOM_PATHS.name: partial(check_paths, properties.BLOOM_PATHS.name),
    properties.SHREDDING_RULES.name: _check_rules,
    properties.SKIPPING_NAMES.name: check_columns,
    properties.TYPED_PATHS.name: _check_typed_paths,
}


def unreadable(configuration: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each property of Variant paths that counts as not set because it cannot be read."""
    parsers: Mapping[str, Callable[[str], object]] = {
        properties.VARIANT_STATS_NAMES.name: parse_paths,
        properties.BLOOM_PATHS.name: parse_paths,
        properties.SHREDDING_RULES.name: Steering.parse,
    }
    for name, parse in parsers.items():
        try:
            parse(configuration.get(name, ""))
        except UserError as e:
            yield f"{name} is kept, but counts as not set: {e.message}"


#: What to do with a path, by which nothing can be partitioned.
_OF_PATHS = (
    "A path is no column: partition by one that is computed from it. An ingest computes its `columns`, and a table "
    "those that are GENERATED ALWAYS AS."
)


def partition_columns_of(schema: StructType, columns: Sequence[str]) -> list[str]:
    """The partition columns as the schema spells them. Errors: UNKNOWN_COLUMN, DUPLICATE_COLUMN,
    INVALID_PARTITION_COLUMN."""
    refuse_twice(schema.names)
    refuse_twice(columns)
    found = []
    for name in columns:
        column = schema.field(name, _OF_PATHS)
        if column.type == VARIANT or isinstance(column.type, StructType | ArrayType | MapType):
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"the column {name!r} cannot be a partition column: it is not of a plain type",
                hint="Partition by a column of a plain type, such as a date taken from the variant.",
                column=name,
            )
        if special.IDENTITY_START in column.metadata:
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"the column {name!r} cannot be a partition column: it is an identity column (as in delta-spark)",
                hint="Every row would be a partition.",
                column=name,
            )
        if collations.of_field(column):
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"the column {name!r} cannot be a partition column: it has a collation (Spark rejects it too)",
                hint="Partition by a column without a collation; equal strings would get different partitions.",
                column=name,
            )
        found.append(column.name)
    if columns and len(found) == len(schema):
        raise UserError("INVALID_PARTITION_COLUMN", "all columns are partition columns", hint="Leave one out.")
    return found
