"""Columns of the log's tables as single arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, from_numpy
from mica.errors import CorruptDataError


def typed(actions: Sequence[Mapping[str, Any]], kind: pa.StructType, name: str) -> pa.StructArray:
    """Actions of the log, all called `name`, as an array. Errors: CORRUPT_LOG, which tells what is of another type."""
    if (found := typed_or_none(actions, kind)) is not None:
        return found
    values = ((action, child, action.get(child.name)) for action in actions for child in kind)
    action, child, value = next(one for one in values if typed_or_none([one[2]], one[1].type) is None)
    raise CorruptDataError(
        "CORRUPT_LOG",
        f"{name}.{child.name} in the log cannot be used: it is {value!r}, not of type {child.type}",
        hint="Restore the log.",
        **({"path": action["path"]} if "path" in action else {}),
    )


def typed_or_none(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array | None:
    """Values of JSON as an array, of the type that they have if none is given; None if one is of another type."""
    try:
        return arrow_array(values, kind)
    except (TypeError, ValueError, OverflowError):
        return None


#: Pieces are joined up to this many rows: an array of strings ends at 2 GiB.
_MOST_JOINED = 1 << 20


def staying(sizes: Sequence[float], count: int) -> int:
    """How many of the pieces with these sizes stay as they are when one of `count` rows comes; it is joined with the
    others. The newest are joined while one is not twice as large as all after it, so n pieces become log(n), and each
    row is copied log(n) times."""
    kept = len(sizes)
    while kept and sizes[kept - 1] < 2 * count and count <= _MOST_JOINED:
        kept -= 1
        count += int(sizes[kept])
    return kept


def grown(table: pa.Table, more: pa.Table) -> pa.Table:
    """Returns the rows of both, in few chunks (`staying`)."""
    batches = table.to_batches()
    kept = staying([batch.num_rows for batch in batches], more.num_rows)
    tail = [*batches[kept:], *more.to_batches()]
    joined = tail if len(tail) < 2 else [pa.concat_batches(tail)]
    return pa.Table.from_batches([*batches[:kept], *joined], table.schema)


def taken(values: pa.Array, rows: np.ndarray) -> pa.Array:
    """Returns these rows; consecutive ones are not copied."""
    if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows) and (np.diff(rows) == 1).all():
        return values.slice(int(rows[0]), len(rows))
    return pc.take(values, from_numpy(rows))
