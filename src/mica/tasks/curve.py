"""Places rows on a Hilbert curve through several columns and Variant paths, so that neighbours on it are alike in all.

The rule: each dimension orders all of its values, and quantiles of a sample cut it into ranges of about equal weight;
the curve goes through the grid of these ranges. The sample affects only how good the order is, never which rows are
written. Of a plain column nulls come first. A Variant path has a place for every value: missing and null, numbers,
strings, times, then all others; so values that drift from the usual type are together, and few files lose their bounds
to them. Strings with a collation are ordered by it, by ICU's without case and accents (`collation/near.py`).

Source: J. Skilling, "Programming the Hilbert curve" (2004).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array, scalar, to_numpy
from mica.collation.near import placed
from mica.records import dataclass
from mica.schema.arrow import from_arrow_type, to_arrow
from mica.schema.types import StructField, StructType
from mica.skipping.row_ranges import rows_of
from mica.tasks import ranges
from mica.tasks.each_file import each_file
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.packed import packing
from mica.tasks.parts import FilePart
from mica.tasks.read import read_file, read_ranges
from mica.tasks.spots import spots

#: The column with the place on the curve.
CURVE = "__mica_curve"

#: Ranges per dimension, as bits, and the bits of a place.
BITS, PLACE_BITS = 10, 62

#: Rows of the sample of all files, and at least of each.
SAMPLE_ROWS, LEAST_ROWS = 1 << 16, 256

_NUMBERS, _STRINGS, _TIMES, _OTHERS = 1, 2, 3, 4
_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"), _NUMBERS),
    "STRING": _STRINGS,
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"), _TIMES),
}

#: A dimension that is a Variant is read as its type and as each of these types.
VARIANT_PARTS = (("type", "schema_of_variant({})"), ("number", "try_cast({} AS DOUBLE)"),
                 ("string", "try_cast({} AS STRING)"), ("time", "try_cast({} AS TIMESTAMP)"))  # fmt: skip


@dataclass(frozen=True)
class Dimension:
    """One column or path. `columns` are the outputs of the read that hold its values."""

    columns: tuple[str, ...]
    #: Whether it is a Variant, with the columns of `VARIANT_PARTS`.
    variant: bool = False
    #: The identifier of its strings' collation.
    collation: str | None = None

    def keys(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The columns by which rows are ordered, first to last."""
        values = [batch.column(name) for name in self.columns]
        if not self.variant:
            return values if self.collation is None else [placed(values[0], self.collation)]
        types, *typed = values
        kinds = _kinds(types)
        masked = [
            pc.if_else(pc.fill_null(pc.equal(kinds, kind), False), value, scalar(None, value.type))
            for kind, value in zip((_NUMBERS, _STRINGS, _TIMES), typed, strict=True)
        ]
        return [kinds, *masked]


def _kinds(types: pa.Array) -> pa.Array:
    """The class of each type, null for missing values and nulls."""
    encoded = types.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    kinds = [
        None if name == "VOID" else _NUMBERS if name.startswith("DECIMAL") else _KINDS.get(name, _OTHERS)
        for name in names
    ]
    return arrow_array(kinds, pa.int32()).take(encoded.indices)


@dataclass(frozen=True)
class Curve:
    """The dimensions and their ranges."""

    dimensions: tuple[Dimension, ...]
    ranges: tuple[ranges.Ranges, ...]

    @property
    def bits(self) -> int:
        """Bits of a range's number."""
        return bits_for(len(self.dimensions))

    def places(self, keys: Sequence[Sequence[pa.Array]]) -> pa.Array:
        """The place of each row, by the keys of each dimension."""
        axes = [to_numpy(found.of(columns)).astype(np.uint64) for found, columns in zip(self.ranges, keys, strict=True)]
        return arrow_array(hilbert(axes, self.bits).astype(np.int64))


def bits_for(dimensions: int) -> int:
    """Bits of a range's number, so that a place fits an integer."""
    return max(1, min(BITS, PLACE_BITS // dimensions))


def hilbert(axes: Sequence[NDArray[np.uint64]], bits: int) -> NDArray[np.uint64]:
    """The distance along the Hilbert curve of points, given by their coordinates of so many bits."""
    one, zero = np.uint64(1), np.uint64(0)
    x = [axis.copy() for axis in axes]
    count = len(x)
    for bit in range(bits - 1, 0, -1):
        q, p = np.uint64(1 << bit), np.uint64((1 << bit) - 1)
        for i in range(count):
            high = (x[i] & q) != 0
            swap = np.where(high, zero, (x[0] ^ x[i]) & p)
            x[0] = np.where(high, x[0] ^ p, x[0] ^ swap)
            if i:
                x[i] ^= swap
    for i in range(1, count):
        x[i] ^= x[i - 1]
    turn = np.zeros_like(x[0])
    for bit in range(bits - 1, 0, -1):
        turn = np.where((x[-1] & np.uint64(1 << bit)) != 0, turn ^ np.uint64((1 << bit) - 1), turn)
    found = np.zeros_like(x[0])
    for bit in range(bits - 1, -1, -1):
        for axis in x:
            found = (found << one) | (((axis ^ turn) >> np.uint64(bit)) & one)
    return found


@dataclass(frozen=True)
class KeysSpec:
    """What is read of each file for the sample: partition columns, then the dimensions' columns."""

    read: ReadSpec
    partition_by: tuple[str, ...]
    dimensions: tuple[Dimension, ...]
    #: Bytes of all files.
    total: int


def sample(spec: KeysSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """Partition values and keys of a sample of the rows of files, `ranges.weighted` and packed."""

    def some(part: FilePart) -> Iterator[pa.RecordBatch]:
        file = DataFileReader(spec.read, part)
        chosen = spots(file.ranges, max(LEAST_ROWS, SAMPLE_ROWS * (part.size or 0) // max(1, spec.total)))
        rows = rows_of(chosen)
        for batch in read_ranges(file, chosen):
            keys = [key for dimension in spec.dimensions for key in dimension.keys(batch)]
            columns = [*(batch.column(name) for name in spec.partition_by), *keys]
            yield from packing([ranges.weighted(columns, np.full(batch.num_rows, (part.size or 1) / rows))])

    yield from each_file(some, parts, spec.read)


@dataclass(frozen=True)
class CurveSpec:
    """`read` has the table's columns, the first `columns`, and those of the dimensions."""

    read: ReadSpec
    columns: StructType
    curve: Curve

    @property
    def keys(self) -> list[tuple[str, pa.DataType]]:
        """The keys of the order: the place on the curve, and for a single dimension its own keys."""
        dimensions = self.curve.dimensions
        own = self.curve.ranges[0].starts.schema.types if len(dimensions) == 1 else []
        return [(CURVE, pa.int64()), *((f"{CURVE}_{i}", kind) for i, kind in enumerate(own))]

    @property
    def rows(self) -> StructType:
        """The columns of `curve_rows`."""
        keys = (StructField(name, from_arrow_type(kind)) for name, kind in self.keys)
        return StructType((*self.columns.fields, *keys))


def curve_rows(spec: CurveSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """The rows of the files as columns of the table, and the keys of the order."""
    schema = to_arrow(spec.rows)
    for batch in each_file(partial(read_file, spec.read), parts, spec.read):
        keys = [dimension.keys(batch) for dimension in spec.curve.dimensions]
        more = keys[0] if len(keys) == 1 else []
        columns: list[Any] = [*batch.columns[: len(spec.columns.fields)], spec.curve.places(keys), *more]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
