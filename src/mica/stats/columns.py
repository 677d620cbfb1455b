"""Which columns have statistics, and their layout in the JSON.

The rule: the statistics mirror the schema, with physical names under column mapping (mode name or id).
`delta.dataSkippingStatsColumns` names the columns; otherwise the first `delta.dataSkippingNumIndexedCols` leaves
(32, -1 for all) have statistics, counted depth first and without partition columns. Leaves of ordered types and
variants have bounds, all leaves a null count; arrays and maps are one leaf without bounds.

    stats
    ├── numRecords        rows in the file, deleted ones included
    ├── tightBounds       false: rows were deleted since, the bounds may be wider than the remaining rows
    ├── minValues         {"id": 1, "s": {"x": "a"}, "v": "<z85>"}    v: an object of normalized paths
    ├── maxValues         the same; strings truncated upwards, timestamps truncated to ms (read: plus 1 ms)
    └── nullCount         {"id": 0, "s": {"x": 2}, "v": 1, "l": 0}

Source: Delta protocol, "Per-file Statistics", "Writer Requirements for Column Mapping"; Variant Shredding RFC,
"Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mica.properties import SKIPPING_COLUMNS, SKIPPING_NAMES
from mica.records import dataclass
from mica.schema.types import DOUBLE, VARIANT, ArrayType, DataType, MapType, Primitive, StructField, StructType

PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"
TYPE_CHANGES = "delta.typeChanges"

_UNORDERED = frozenset(("boolean", "binary", "void"))


@dataclass(frozen=True)
class IndexedColumn:
    """A leaf with statistics. `column` has the schema's names, `names` those in the file and in the JSON."""

    column: tuple[str, ...]
    names: tuple[str, ...]
    type: DataType
    #: Whether older files hold floats (`was_float`).
    was_float: bool = False

    @property
    def has_bounds(self) -> bool:
        """Whether min and max are kept: for plain ordered types and for variants."""
        return is_ordered(self.type) or self.type == VARIANT


def is_ordered(type_: DataType) -> bool:
    """Whether values of the type have a min and a max in the log."""
    return isinstance(type_, Primitive) and type_.known and type_ != VARIANT and type_.name not in _UNORDERED


def physical_name(f: StructField) -> str:
    """The name of the column in files and statistics."""
    return str(f.metadata.get(PHYSICAL_NAME, f.name))


def was_float(f: StructField) -> bool:
    """Whether a DOUBLE column was a FLOAT once. Bounds of its older files are then the shortest texts of floats, which
    have other values when parsed as doubles (PROTOCOL.md "Type Widening").
    """
    changes = f.metadata.get(TYPE_CHANGES)
    if f.type != DOUBLE or not isinstance(changes, list):
        return False
    return any(isinstance(change, Mapping) and change.get("fromType") == "float" for change in changes)


def field_of(schema: StructType, column: Iterable[str]) -> StructField:
    """The field at a path of names through structs."""
    *_, found = _fields_at(schema, column)
    return found


def physical_names(schema: StructType, column: Iterable[str]) -> tuple[str, ...]:
    """Returns the names in the file of a column given by the schema's names."""
    return tuple(map(physical_name, _fields_at(schema, column)))


def all_variants(type_: DataType, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the VARIANTs in a type by their names in the file; `element`, `key` and `value` are what arrays and maps
    hold."""
    match type_:
        case StructType(fields):
            for f in fields:
                yield from all_variants(f.type, (*names, physical_name(f)))
        case ArrayType(element):
            yield from all_variants(element, (*names, "element"))
        case MapType(key, value):
            yield from all_variants(key, (*names, "key"))
            yield from all_variants(value, (*names, "value"))
        case _ if type_ == VARIANT:
            yield names


def _fields_at(schema: StructType, column: Iterable[str]) -> Iterator[StructField]:
    here: DataType = schema
    for name in column:
        assert isinstance(here, StructType)
        found = here.field(name)
        yield found
        here = found.type


def indexed_leaves(
    schema: StructType, configuration: Mapping[str, str], partition_columns: Iterable[str] = ()
) -> list[IndexedColumn]:
    """Returns the leaves that a writer collects statistics for, in the order of the schema."""
    leaves = leaves_of(schema, partition_columns)
    named = SKIPPING_NAMES.of(configuration)
    if named is not None:
        wanted = [tuple(part.lower() for part in parts) for parts in named]
        return [leaf for leaf in leaves if any(tuple(n.lower() for n in leaf.column[: len(w)]) == w for w in wanted)]
    limit = SKIPPING_COLUMNS.of(configuration)
    return leaves if limit < 0 else leaves[:limit]


def leaves_of(schema: StructType, partition_columns: Iterable[str] = ()) -> list[IndexedColumn]:
    """Returns all leaves that may have statistics, whatever the table's properties."""
    partitions = {name.lower() for name in partition_columns}
    columns = StructType(tuple(f for f in schema.fields if f.name.lower() not in partitions))
    return list(_leaves(columns, (), ()))


def _leaves(here: StructType, column: tuple[str, ...], names: tuple[str, ...]) -> Iterator[IndexedColumn]:
    for f in here.fields:
        at, name = (*column, f.name), (*names, physical_name(f))
        if isinstance(f.type, StructType):
            yield from _leaves(f.type, at, name)
        else:
            yield IndexedColumn(at, name, f.type, was_float(f))
