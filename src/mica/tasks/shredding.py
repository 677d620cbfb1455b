"""How the Variants of a write are shredded.

The rule: a column has the tree that is given for it, or gets one from the first rows of each file, within the limits of
its rules of inference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import pyarrow as pa

from mica.records import dataclass
from mica.tasks.late_types import late_tags
from mica.variant import kernel
from mica.variant.shredding import Limits
from mica.variant.steering import Steering, When

#: A tag of a file that `optimize` writes again even alone: rules leave some of its paths for later.
LATER = "mica.shredLater"


@dataclass(frozen=True)
class Shredding:
    """How Variants are shredded; columns are named by their paths."""

    variants: tuple[tuple[str, ...], ...] = ()
    #: Shredding trees; an absent column is inferred per file. None: shred nothing.
    trees: Mapping[tuple[str, ...], pa.DataType] | None = field(default_factory=dict)
    #: Rules of inference, and whether rows are new or those of files that are shredded again.
    steering: Mapping[tuple[str, ...], Steering] = field(default_factory=dict)
    moment: When = "new"
    #: Whether files report the paths that did not become typed columns (`tasks/left.py`).
    reports_left: bool = False
    #: The layout, `standard`, or `early` for files outside of tables; and whether a file's first rows decide where it
    #: has `untyped_value`.
    layout: kernel.Layout = "standard"
    omit_untyped: bool = False
    #: Whether the Variants come from JSON, which has none of the types that Spark's Variants lack.
    from_json: bool = False

    @property
    def infers(self) -> bool:
        """Whether a column gets its tree from rows."""
        return self.trees is not None and any(name not in self.trees for name in self.variants)

    def limits_of(self, column: tuple[str, ...], moment: When | None = None) -> Limits:
        """The limits of inference for a column, with its rules."""
        steering = self.steering.get(column)
        return Limits() if steering is None else steering.limits(Limits(), moment or self.moment)

    def tags_of(self, late_types: bool) -> dict[str, str]:
        """The tags of a file with Variants, which may hold late types or not."""
        waits = self.moment != "again" and any(one.has_later for one in self.steering.values())
        return {**late_tags(late_types), **({LATER: "yes"} if waits else {})}
