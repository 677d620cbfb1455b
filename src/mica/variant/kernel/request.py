"""What a file or batch is asked for.

The rule: a request is one value, made once and checked by its types; the kernel reads its attributes
(`native/py/src/request.rs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

Layout = Literal["standard", "early"]

#: Which columns may be of the early layout: all, none, or those at these paths of names.
Early = bool | list[list[str]]

#: Rows of a file, as (first, end).
RowRanges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Request:
    """A column (its names in the file, through structs), or a path into a Variant column.

    A whole column gives one array, unshredded or in a storage `layout`; the latter with a mask of the rows that were
    built anew. A path (keys, and positions from 0) gives its values cast to `type`, Variants where there is none, and
    the mask of failed casts. `name` is that of the output column, the request's number where there is none; masks are
    called `name!`. In the row groups `untyped_in` no typed value of the path matters, and none is read.
    """

    column: tuple[str, ...]
    path: tuple[str | int, ...] | None = None
    type: pa.DataType | None = None
    name: str | None = None
    layout: Layout | None = None
    untyped_in: tuple[int, ...] = ()
