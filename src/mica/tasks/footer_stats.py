"""The statistics of existing data files from their footers alone.

The rule: a bound is taken only where it is certain for every row: the kernel's word that the footer's is usable in all
row groups that have values, and for a Variant path that no value is beside its typed column. Parquet bounds leave NaN
out and Spark ranks it above all numbers, so floats and doubles get a minimum only, and paths of them no bounds, unless
mica wrote the file. Strings are cut as in a write.

Source: Delta protocol, "Per-file Statistics"; Variant Shredding RFC, "Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.errors import UserError
from mica.expressions.bind import Leaf
from mica.expressions.coerce import has_bounds, is_real
from mica.records import dataclass
from mica.schema.arrow import from_arrow_type
from mica.schema.types import STRING, VARIANT, DataType
from mica.skipping.within_files import interval
from mica.stats import documents
from mica.stats.columns import IndexedColumn, indexed_leaves
from mica.stats.render import PathBounds, as_numbers, stats_of
from mica.tasks.ahead import in_order, readers_of
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.parts import FilePart
from mica.variant.encode import encode
from mica.variant.path import VariantPath

#: One row per file: its number, its rows and its statistics.
STATS = pa.schema([pa.field("file", pa.int32(), False), pa.field("stats", pa.string(), False)])

#: The longest string in a bound, in code points; a longer one is cut.
MAX_CODE_POINTS = 32


@dataclass(frozen=True)
class FooterSpec:
    """What is the same for every file."""

    read: ReadSpec
    properties: Mapping[str, str] = field(default_factory=dict)
    variant_bounds: bool = True


def footer_stats(spec: FooterSpec, files: Iterable[FilePart]) -> Iterator[pa.RecordBatch]:
    """The statistics of each file; only footers are read."""

    def stats(part: FilePart) -> Iterator[pa.RecordBatch]:
        found = _stats(spec, DataFileReader(spec.read, part))
        yield pa.record_batch([arrow_array([part.number], pa.int32()), arrow_array([found])], schema=STATS)

    yield from in_order(stats, list(files), readers_of(spec.read.storage))


def _stats(spec: FooterSpec, file: DataFileReader) -> str:
    schema, partitions = spec.read.columns, spec.read.partition_by
    plain: dict[str, dict[str, Any]] = {"min": {}, "max": {}, "null_count": {}}
    paths: list[PathBounds] = []
    own = (file.reader.created_by or "").startswith("mica")
    for column in indexed_leaves(schema, spec.properties, partitions):
        found = _bounds(file, Leaf(column.column, None, column.type), own=own)
        for side, value in zip(("min", "max"), found.sides, strict=True):
            documents.put(plain[side], column.names, value)
        if found.nulls is not None:
            documents.put(plain["null_count"], column.names, found.nulls)
        if column.type == VARIANT:
            paths += _paths(file, column, own=own)
    return stats_of(
        file.reader.num_rows, plain, paths, schema, spec.properties,
        variant_bounds=spec.variant_bounds, partition_columns=partitions,
    )  # fmt: skip


@dataclass(frozen=True)
class _Bounds:
    """Minimum and maximum as in `stats_of`, and the number of nulls; None: unknown."""

    sides: tuple[Any, Any] = (None, None)
    nulls: int | None = None
    #: The bounds as Arrow values.
    values: tuple[pa.Scalar, pa.Scalar] | None = None


def _bounds(file: DataFileReader, leaf: Leaf, *, own: bool) -> _Bounds:
    rows = file.reader.num_rows
    if not rows:
        return _Bounds(nulls=0)
    request = file.column(leaf).request
    if request is None:
        return _Bounds(nulls=rows)  # the file lacks the column
    groups = file.reader.bounds([replace(request, name="0")])
    column = groups.column("0")
    counts = column.field("null_count")
    nulls = None if counts.null_count else pc.sum(counts).as_py()
    if leaf.type == VARIANT:
        return _Bounds(nulls=nulls)
    found = interval(leaf, column, groups.column("rows"), "UTC")
    known = pc.or_(pc.and_(found.low.is_valid(), found.high.is_valid()), found.all_null)
    if not pc.all(known).as_py() or not pc.any(found.low.is_valid()).as_py():
        return _Bounds(nulls=nulls)
    low, high = pc.min(found.low), pc.max(found.high)
    sides = [as_numbers(pa.repeat(side, 1))[0].as_py() for side in (low, high)]
    if is_real(leaf.type) and not own:
        return _Bounds((sides[0], None), nulls)
    if leaf.type == STRING:
        sides = [sides[0][:MAX_CODE_POINTS], _cut_max(sides[1])]
    return _Bounds((sides[0], sides[1]), nulls, (low, high))


def _cut_max(text: str) -> str | None:
    if len(text) <= MAX_CODE_POINTS:
        return text
    return None if text[MAX_CODE_POINTS] == "\U0010ffff" else text[:MAX_CODE_POINTS] + "\U0010ffff"


def _paths(file: DataFileReader, column: IndexedColumn, *, own: bool) -> Iterator[PathBounds]:
    tree = file.reader.tree(column.names)
    if tree is None or tree[1]:
        return
    for steps, type_ in _leaves(tree[0]):
        path = VariantPath(steps)
        found = _bounds(file, Leaf(column.column, path, type_), own=own)
        if found.values is None or None in found.sides:
            continue
        ends = found.sides if type_ == STRING else found.values  # Python has no dates after the year 9999
        low, high = (encode(end)[1] for end in ends)
        rows = file.reader.num_rows - (found.nulls or 0)
        yield PathBounds(column.names, path.normalized, rows, low, high)


def _leaves(tree: pa.DataType, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], DataType]]:
    """The typed leaves that may have bounds, outside of arrays."""
    if pa.types.is_struct(tree):
        for child in tree:
            yield from _leaves(child.type, (*at, child.name))
        return
    try:
        type_ = from_arrow_type(tree)
    except UserError:  # times, nanoseconds
        return
    if has_bounds(type_):
        yield at, type_
