"""Adds file and value to errors of single rows.

The rule: an expression is evaluated over batches without knowledge of files, so its error has the row of the batch. The
reader of the file adds the file name and the value, which it reads again after the failure.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from mica.errors import MicaError, UserError
from mica.expressions.bind import Leaf
from mica.expressions.evaluate import RowError
from mica.expressions.plain_values import to_values
from mica.schema import literals
from mica.schema.types import VARIANT, DataType
from mica.variant.values import to_json

#: Characters of a value that an error shows.
SHOWN = 100


def located(error: RowError, name: str, value: Callable[[Leaf, int], str | None] | None = None) -> UserError:
    """The error with the file's name, and with the value that `value` finds for the leaf and the row of the batch."""
    shown = error.value
    if shown is None and error.leaf is not None and value is not None:
        # A failure here must not hide the error itself.
        with suppress(MicaError, pa.ArrowException, LookupError):
            shown = value(error.leaf, int(error.context["row"]))
    what = error.what
    if shown is not None:
        what += f": the value is {shortened(shown)}"
    condition = error.context.get("condition")
    return UserError(error.code, f"{name}: {what}", hint=error.hint, path=name, condition=condition).at_rows(
        error.failing
    )


def shortened(shown: str) -> str:
    """The text of a value, as errors show it."""
    return shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"


def told(values: pa.Array, type_: DataType) -> str:
    """The first of these values, as errors show it: as SQL where it is plain, or the JSON of a Variant."""
    if type_ == VARIANT:
        return shortened(text(values, 0) or "NULL")
    first = values.slice(0, 1)
    try:
        return shortened(literals.show(to_values(first, type_)[0], type_))
    except OverflowError:  # parts of it are beyond the years that Python has
        return shortened(first.to_string(skip_new_lines=True))


def whole(leaf: Leaf) -> Leaf:
    """The leaf as the Variant that it is in the document, uncast."""
    return replace(leaf, type=VARIANT, strict=False)


def text(variants: pa.Array, row: int) -> str | None:
    """The JSON of one Variant."""
    found: str | None = to_json(variants.slice(row, 1))[0].as_py()
    return found
