"""Finds a table's columns in a file and converts their values.

The rule: only `locate` finds a column in a file: by `field_id` if the table maps by id, else by its physical name
(`stats.columns.physical_name`), exact or else ignoring case, as in Spark. Only `aligned` converts values: fields that
the file lacks are null, fields that the table lacks are skipped, narrower types are widened, and INT64 or INT96
timestamps without the UTC mark are in UTC, as in Spark. Anything else is an error.

Source: Delta protocol, "Column Mapping"; "Reader Requirements for Column Mapping".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import pyarrow as pa

from mica import compute as pc
from mica.cached import cached_property
from mica.errors import CorruptDataError, UserError
from mica.records import dataclass
from mica.schema.arrow import has_extension, is_list, is_variant, to_arrow_field, to_arrow_type
from mica.schema.ddl import type_to_ddl
from mica.schema.evolution import cast_to
from mica.schema.lists import with_offsets
from mica.schema.types import (
    BINARY,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from mica.stats.columns import FIELD_ID, physical_name

Cast = Callable[[pa.Array], pa.Array]

#: Where a Parquet schema's field ids are in an Arrow schema.
_PARQUET_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Located:
    """A column of a file: its names there, from the top, and its field."""

    names: tuple[str, ...]
    field: pa.Field


class Level:
    """The fields of one level of a file, by name and by id: wide files are asked for each of their columns, so no
    question looks at all fields."""

    def __init__(self, fields: Iterable[pa.Field]) -> None:
        self.fields = list(fields)
        self._inside = dict[int, Level]()

    def named(self, name: str) -> list[int]:
        """The indices of a name: the exact one, otherwise those that differ only in case."""
        return self._names.get(name) or self._lower_names.get(name.lower(), [])

    def with_id(self, asked: str) -> list[int]:
        """The indices of a Parquet field id."""
        return self._ids.get(asked, [])

    def inside(self, at: int) -> Level:
        """The fields of a struct; none of anything else."""
        if at not in self._inside:
            field = self.fields[at]
            self._inside[at] = Level(field.type if pa.types.is_struct(field.type) and not is_variant(field) else ())
        return self._inside[at]

    @cached_property
    def _names(self) -> dict[str | None, list[int]]:
        return _places(f.name for f in self.fields)

    @cached_property
    def _lower_names(self) -> dict[str | None, list[int]]:
        return _places(f.name.lower() for f in self.fields)

    @cached_property
    def _ids(self) -> dict[str | None, list[int]]:
        return _places(map(field_id, self.fields))


def _places(keys: Iterable[str | None]) -> dict[str | None, list[int]]:
    found: dict[str | None, list[int]] = {}
    for i, key in enumerate(keys):
        found.setdefault(key, []).append(i)
    return found


def locate(file: Level, schema: StructType, column: Iterable[str], *, by_id: bool = False) -> Located | None:
    """The column (the schema's names, through structs) in a file, or None if the file lacks it.

    Errors: AMBIGUOUS_COLUMN, MISSING_FIELD_ID.
    """
    here: DataType = schema
    level = file
    found: pa.Field | None = None
    names = []
    for name in column:
        assert isinstance(here, StructType)
        wanted = here.field(name)
        at = position(level, wanted, by_id=by_id)
        if at is None:
            return None
        found = level.fields[at]
        names.append(found.name)
        here, level = wanted.type, level.inside(at)
    return None if found is None else Located(tuple(names), found)


def unmarked(file: Level, fields: Iterable[StructField], *, by_id: bool = False) -> Iterator[tuple[str, ...]]:
    """Yields the Variants at and below fields of the table that a file does not mark, by their names there. `element`,
    `key` and `value` are what arrays and maps hold. A field that cannot be told is left out: whoever asks for it gets
    the error.
    """
    for wanted in fields:
        try:
            at = position(file, wanted, by_id=by_id)
        except CorruptDataError:
            continue
        if at is not None:
            found = file.fields[at]
            yield from _unmarked(found, wanted.type, (found.name,), by_id)


def _unmarked(found: pa.Field, wanted: DataType, names: tuple[str, ...], by_id: bool) -> Iterator[tuple[str, ...]]:
    type_ = found.type
    match wanted:
        case StructType(fields) if pa.types.is_struct(type_):
            for below in unmarked(Level(type_), fields, by_id=by_id):
                yield names + below
        case ArrayType(element) if is_list(type_):
            yield from _unmarked(type_.value_field, element, (*names, "element"), by_id)
        case MapType(key, value) if pa.types.is_map(type_):
            yield from _unmarked(type_.key_field, key, (*names, "key"), by_id)
            yield from _unmarked(type_.item_field, value, (*names, "value"), by_id)
        case _ if wanted == VARIANT and pa.types.is_struct(type_) and not has_extension(found):
            if type_.get_field_index("metadata") >= 0:
                yield names


def position(level: Level, wanted: StructField, *, by_id: bool) -> int | None:
    """The index of a field among the fields of one level of a file."""
    if by_id:
        asked = wanted.metadata.get(FIELD_ID)
        if asked is None:
            raise _no_id(wanted.name)
        same = level.with_id(str(asked))
    else:
        same = level.named(physical_name(wanted))
    if len(same) > 1:
        found = [level.fields[i].name for i in same]
        raise CorruptDataError(
            "AMBIGUOUS_COLUMN",
            f"the column {wanted.name!r} could be any of {found} in a file",
            hint="Rewrite the file with names that differ by more than case.",
            column=wanted.name,
        )
    return same[0] if same else None


def called(file: Level, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The file's own names of the column with these physical names; None if the file lacks it or has it twice."""
    level, found = file, []
    for name in names:
        same = level.named(name)
        if len(same) != 1:
            return None
        found.append(level.fields[same[0]].name)
        level = level.inside(same[0])
    return tuple(found)


def has_others(file: Level, fields: Iterable[StructField], kept: Collection[str] = (), *, by_id: bool = False) -> bool:
    """Whether a file has fields at or below these that the table lacks, but for those of the names in `kept`: columns
    that were dropped, whose values are still there. Errors: those of `locate`."""
    known = {at: wanted for wanted in fields if (at := position(file, wanted, by_id=by_id)) is not None}
    return any(
        found.name not in kept if at not in known else _has_others(found, known[at].type, by_id)
        for at, found in enumerate(file.fields)
    )


def _has_others(found: pa.Field, wanted: DataType, by_id: bool) -> bool:
    type_ = found.type
    match wanted:
        case StructType(fields) if pa.types.is_struct(type_):
            return has_others(Level(type_), fields, by_id=by_id)
        case ArrayType(element) if is_list(type_):
            return _has_others(type_.value_field, element, by_id)
        case MapType(key, value) if pa.types.is_map(type_):
            return _has_others(type_.key_field, key, by_id) or _has_others(type_.item_field, value, by_id)
    return False


def field_id(field: pa.Field) -> str | None:
    """The Parquet field id of a file's field."""
    found = (field.metadata or {}).get(_PARQUET_ID)
    return None if found is None else found.decode()


def has_ids(fields: Iterable[pa.Field]) -> bool:
    """Whether any field of a file has an id."""
    return any(
        field_id(f) is not None
        or (pa.types.is_struct(f.type) and has_ids(f.type))
        or (is_list(f.type) and has_ids([f.type.value_field]))
        or (pa.types.is_map(f.type) and has_ids([f.type.key_field, f.type.item_field]))
        for f in fields
    )


def find(schema: pa.Schema, names: tuple[str, ...]) -> pa.Field | None:
    """The field of a file at a path of the file's own names, or None."""
    at = schema.get_field_index(names[0])
    field = schema.field(at) if at >= 0 else None
    for name in names[1:]:
        if field is None or not pa.types.is_struct(field.type):
            return None
        at = field.type.get_field_index(name)
        field = field.type.field(at) if at >= 0 else None
    return field


def aligned(found: pa.Field, wanted: StructField, at: str, *, by_id: bool = False) -> Cast:
    """A function that converts a file's column (Variants unshredded) to the table's values. Errors: INCOMPATIBLE_TYPE,
    and those of `locate`.
    """
    type_ = found.type
    match wanted.type:
        case _ if wanted.type == VARIANT:
            return _variant(found, wanted, at)
        case _ if is_variant(found):
            pass
        case StructType() | ArrayType() | MapType() if pa.types.is_null(type_):
            target = to_arrow_type(wanted.type)
            return lambda array: pa.nulls(len(array), target)
        case StructType(fields) if pa.types.is_struct(type_):
            return _struct(Level(type_), fields, at, by_id=by_id)
        case ArrayType(element) if is_list(type_):
            inner = StructField("element", element)
            return _list(aligned(type_.value_field, inner, f"{at}.element", by_id=by_id), to_arrow_type(wanted.type))
        case MapType(key, value) if pa.types.is_map(type_):
            keys = aligned(type_.key_field, StructField("key", key), f"{at}.key", by_id=by_id)
            values = aligned(type_.item_field, StructField("value", value), f"{at}.value", by_id=by_id)
            return _map(keys, values, to_arrow_type(wanted.type))
        case StructType() | ArrayType() | MapType():
            pass
        case _:
            return _primitive(found, wanted, at)
    raise UserError("INCOMPATIBLE_TYPE", f"the column {at!r} is {type_to_ddl(wanted.type)}, found {type_}")


def _variant(found: pa.Field, wanted: StructField, at: str) -> Cast:
    if not is_variant(found):
        cast_to(found, wanted, at)  # fails for anything but a struct of metadata and value

    def run(array: pa.Array) -> pa.Array:
        return cast_to(pa.field(at, array.type), wanted, at)(array)

    return run


def _primitive(found: pa.Field, wanted: StructField, at: str) -> Cast:
    target = to_arrow_type(wanted.type)
    if found.type == target:
        return _same
    both = {TIMESTAMP, TIMESTAMP_NTZ}
    if wanted.type in both and pa.types.is_timestamp(found.type) and found.type.unit != "ns":
        # The UTC mark is ignored and the numbers are kept, as in Spark.
        return lambda array: pc.cast(pc.cast(array, pa.timestamp("us", array.type.tz)), target)
    if wanted.type == STRING and pa.types.is_binary(found.type):
        return lambda array: pc.cast(array, target)  # old writers leave the annotation out
    if wanted.type == BINARY and pa.types.is_string(found.type):
        return lambda array: pc.cast(array, target)
    return cast_to(found, StructField(wanted.name, wanted.type), at)


def _same(array: pa.Array) -> pa.Array:
    return array


def _struct(found: Level, fields: tuple[StructField, ...], at: str, *, by_id: bool) -> Cast:
    places = [position(found, f, by_id=by_id) for f in fields]
    casts = [
        None if i is None else aligned(found.fields[i], f, f"{at}.{f.name}", by_id=by_id)
        for i, f in zip(places, fields, strict=True)
    ]
    inner = [to_arrow_field(f) for f in fields]

    def run(array: pa.Array) -> pa.Array:
        children = [
            pa.nulls(len(array), f.type) if i is None or cast is None else cast(array.field(i))
            for i, cast, f in zip(places, casts, inner, strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        if not inner:
            return pc.cast(array, pa.struct([]))
        return pa.StructArray.from_arrays(children, fields=inner, mask=mask)

    return run


def _list(cast: Cast, wanted: pa.DataType) -> Cast:
    def run(array: pa.Array) -> pa.Array:
        if not pa.types.is_list(array.type):
            array = pc.cast(array, pa.list_(array.type.value_field))
        offsets, array = with_offsets(array)
        return pa.ListArray.from_arrays(offsets, cast(array.values), type=wanted)

    return run


def _map(key: Cast, value: Cast, wanted: pa.DataType) -> Cast:
    def run(array: pa.Array) -> pa.Array:
        offsets, array = with_offsets(array)
        return pa.MapArray.from_arrays(offsets, key(array.keys), value(array.items), type=wanted)

    return run


def _no_id(name: str) -> CorruptDataError:
    return CorruptDataError(
        "MISSING_FIELD_ID",
        f"the table maps columns by id, and the column {name!r} of its schema has none ({FIELD_ID})",
        hint="Restore the table's schema, or an older version.",
        column=name,
    )
