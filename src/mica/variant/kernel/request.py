"""What is read from a file or batch.

The rule: a request is one immutable value with checked types; the kernel reads its attributes
(`native/py/src/request.rs`).
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from mica.records import dataclass

Layout = Literal["standard", "early"]

#: Which columns may have the early layout: all, none, or those at these paths of names.
Early = bool | list[list[str]]

#: Rows of a file, as (first, end).
RowRanges = list[tuple[int, int]]


@dataclass(frozen=True)
class Request:
    """A column (its names in the file, through structs), or a path into a Variant column.

    A whole column returns one array, unshredded or in a storage `layout`; in a layout also a mask of the rows that were
    rebuilt. A path (keys, and positions from 0) returns its values cast to `type` (None: Variants, or with `json` their
    texts as `to_json` has them) and the mask of failed casts. `name` is the output column's name, by default the
    request's number; masks are called `name!`. In the row groups `untyped_in` typed values of the path are irrelevant
    and not read. `there` asks of a whole Variant column only where it is not null: true there, null elsewhere.
    """

    column: tuple[str, ...]
    path: tuple[str | int, ...] | None = None
    type: pa.DataType | None = None
    name: str | None = None
    layout: Layout | None = None
    untyped_in: tuple[int, ...] = ()
    there: bool = False
    json: bool = False
