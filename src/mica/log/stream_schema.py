"""Whether a stream can go on over a commit that changes its table's metadata.

The rule: a stream reads all files with the columns of the version that it was started on. Commits up to that version
may have older columns, if their files can be read as the table reads old files: columns that came later are null,
narrower types are widened, renamed columns are found by their physical names. A later commit may change whatever
says nothing about rows (comments, the last value of an identity column, names that equal those in files); else the
stream ends, and begins again with the new columns.

    commit                        columns                                        the stream
    ----------------------------  ---------------------------------------------  ------------------------------
    up to the version of `end`    readable with those of `end`                   goes on
                                  another type, or a name that stood for         STREAM_CHANGED, and needs a
                                  another column of the files                    checkpoint folder of its own
    after it                      the same for rows                              goes on
                                  others                                         STREAM_CHANGED, starts again

Source: PROTOCOL.md, "Change Metadata", "Column Mapping", "Type Widening".
"""

from __future__ import annotations

from mica.errors import UserError
from mica.log.actions import Metadata
from mica.log.column_mapping import effective
from mica.log.replay import partition_keys
from mica.log.snapshot import Snapshot
from mica.log.type_changes import is_wider
from mica.properties import COLUMN_MAPPING_MODE
from mica.schema import json as schema_json
from mica.schema.collations import COLLATIONS
from mica.schema.types import ArrayType, DataType, MapType, Primitive, StructType
from mica.stats.columns import physical_name


def check_goes_on(end: Snapshot, version: int, metadata: Metadata) -> None:
    """Refuses the metadata of a version that a stream of `end` cannot go on with. Errors: STREAM_CHANGED."""
    before = version <= end.version
    # Its own mode of column mapping: the feature may have been dropped since, and files have kept their names.
    same_partitions = partition_keys(metadata) == partition_keys(end.metadata, end.protocol)
    if metadata.schema_string == end.metadata.schema_string:
        if same_partitions:
            return
    else:
        columns = columns_of(metadata)
        if same_partitions and (_readable(columns, end.schema) if before else _same(end.schema, columns)):
            return
    raise UserError(
        "STREAM_CHANGED",
        f"version {version} of {end.storage} "
        + (f"has other columns than version {end.version} can read" if before else "changed the table's schema"),
        hint="Give the stream a checkpointLocation of its own: it begins with all rows of the newest version."
        if before
        else "Call load() again and start that stream: it goes on from here with the new schema.",
        version=version,
    )


def columns_of(metadata: Metadata) -> StructType:
    """The columns of a version, as its files name them."""
    # Without a protocol the property may name a mode that is not in effect, so places in files are not asked for.
    return effective(schema_json.loads(metadata.schema_string), COLUMN_MAPPING_MODE.of(metadata.configuration))


def same_in_files(old: DataType, new: DataType) -> bool:
    """Whether columns and fields of `new` have the names in files that those of `old` have; columns that one of them
    lacks have none."""
    match old, new:
        case StructType(fields), StructType():
            later = {f.name: f for f in new.fields}
            both = [(f, later[f.name]) for f in fields if f.name in later]
            return all(physical_name(f) == physical_name(g) and same_in_files(f.type, g.type) for f, g in both)
        case ArrayType(), ArrayType():
            return same_in_files(old.element, new.element)
        case MapType(), MapType():
            return same_in_files(old.key, new.key) and same_in_files(old.value, new.value)
    return True


def _readable(old: DataType, new: DataType) -> bool:
    """Whether values of files with the type `old` can be read as `new`; fields that `new` lacks are left out."""
    match old, new:
        case StructType(fields), StructType():
            later = {physical_name(f): f.type for f in new.fields}
            names = {f.name: physical_name(f) for f in new.fields}
            return all(
                names.get(f.name, physical_name(f)) == physical_name(f)
                and _readable(f.type, later.get(physical_name(f), f.type))
                for f in fields
            )
        case ArrayType(), ArrayType():
            return _readable(old.element, new.element)
        case MapType(), MapType():
            return _readable(old.key, new.key) and _readable(old.value, new.value)
        case Primitive(), Primitive():
            return is_wider(old.name, new.name)
    return False


def _same(ours: DataType, theirs: DataType) -> bool:
    """Whether rows that are written as `theirs` are read rightly as `ours`, and nothing of them is left out."""
    match ours, theirs:
        case StructType(), StructType():
            return len(ours) == len(theirs) and all(
                a.name == b.name
                and physical_name(a) == physical_name(b)
                and (a.nullable or not b.nullable)
                and a.metadata.get(COLLATIONS) == b.metadata.get(COLLATIONS)
                and _same(a.type, b.type)
                for a, b in zip(ours, theirs, strict=True)
            )
        case ArrayType(), ArrayType():
            return (ours.contains_null or not theirs.contains_null) and _same(ours.element, theirs.element)
        case MapType(), MapType():
            nulls = ours.value_contains_null or not theirs.value_contains_null
            return nulls and _same(ours.key, theirs.key) and _same(ours.value, theirs.value)
    return ours == theirs
