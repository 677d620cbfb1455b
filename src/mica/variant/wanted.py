"""What is wanted of a table's Variant columns: trees, and rules for inference.

The rule: what a call gives for a column holds alone; otherwise the table's rules do (`mica.shredding`), and where there
are none the sample decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from mica.errors import UserError
from mica.records import dataclass
from mica.schema.named import find
from mica.schema.spelling import spelled
from mica.variant.shredding import ShreddingSchema
from mica.variant.steering import Steering

Columns = Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class ShreddingWishes:
    """Trees (null: unshredded) and rules, by the path of the column; a column has one, the other or none."""

    trees: Mapping[tuple[str, ...], pa.DataType] = field(default_factory=dict)
    steering: Mapping[tuple[str, ...], Steering] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any, variants: Columns, kept: str | None = None) -> ShreddingWishes:
        """Parses the option `shredding`. `given` maps Variant columns (in any case; `s.v` for a field) to schemas or
        rules, where None leaves a column unshredded; rules alone are for all columns, and with exactly one Variant
        column it may be one schema. A mapping is always by column. `kept` are the rules of the table.

        Errors: UNKNOWN_COLUMN, INVALID_ARGUMENT for one schema when there is not exactly one column, and
        INVALID_SHREDDING_SCHEMA.
        """
        steering = {} if kept is None else _by_column(_lenient(kept), variants)
        if given is None:
            return cls(steering=steering)
        if isinstance(given, str) and Steering.is_in(given):
            rules = Steering.parse(given)
            rules.check_columns(variants)
            return cls(steering=_by_column(rules, variants))
        trees = dict[tuple[str, ...], pa.DataType]()
        for at, wish in _schemas(given, variants).items():
            steering.pop(at, None)
            if isinstance(wish, str) and Steering.is_in(wish):
                steering[at] = Steering.parse(wish).of(at)
            else:
                trees[at] = pa.null() if wish is None else ShreddingSchema.of(wish).tree
        return cls(trees, steering)


def _schemas(given: Any, variants: Columns) -> dict[tuple[str, ...], Any]:
    if not isinstance(given, Mapping):
        if len(variants) != 1:
            named = ", ".join(map(spelled, variants)) or "none"
            raise UserError.bad_value("shredding", given, f"a dict of Variant columns to schemas (here: {named})")
        return dict.fromkeys(variants, given)
    found = dict[tuple[str, ...], Any]()
    for name, schema in given.items():
        column = find(name, variants)
        if column is None:
            raise UserError.unknown_column(name, [*map(spelled, variants)], what="variant column")
        if column in found:
            raise UserError("DUPLICATE_COLUMN", f"shredding names the column {name} twice", column=name)
        found[column] = schema
    return found


def _by_column(rules: Steering, variants: Columns) -> dict[tuple[str, ...], Steering]:
    return {at: own for at in variants if (own := rules.of(at)).rules}


def _lenient(kept: str) -> Steering:
    """The rules of a table; a text that cannot be read (a later version may have set it) counts as none."""
    try:
        return Steering.parse(kept)
    except UserError:
        return Steering(())
