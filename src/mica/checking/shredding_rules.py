"""Shredding rules that follow from what files hold (`mica.shredding`).

The rule: a rule is suggested where files differ: one path that is a column of its type in some files and not in others
gets its type; an object that was cut into many columns which few rows have is left in one piece.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from mica.checking.evidence import TableEvidence
from mica.checking.survey import ColumnPath
from mica.properties import SHREDDING_RULES
from mica.schema.ddl import type_to_ddl

#: An object has too many columns if so many of them have values in less than this share of the rows.
COLUMNS, FEW = 30, 0.05

#: A path gets its type if at least this share of the rows have it; at most so many rules.
PRESENT, RULES = 0.1, 20


def rules(looked: TableEvidence) -> Iterator[dict[str, Any]]:
    """Rules, each with its reason; those that the table has are left out."""
    kept = SHREDDING_RULES.of(looked.snapshot.properties) or ""
    for number, (text, reason) in enumerate((*_sparse(looked), *_typed(looked))):
        if number < RULES and text not in kept:
            yield {"rule": text, "reason": reason}


def _sparse(looked: TableEvidence) -> Iterator[tuple[str, str]]:
    by_parent: dict[ColumnPath, int] = defaultdict(int)
    for path, seen in looked.paths.items():
        if len(path.steps) > 1 and seen.total < FEW * looked.rows:
            by_parent[ColumnPath(path.column, path.steps[:-1])] += 1
    for parent, columns in sorted(by_parent.items()):
        if columns >= COLUMNS:
            why = f"{columns} columns below {parent} have values in less than {FEW:.0%} of the rows"
            yield f"{parent}.*: skip", why


def _typed(looked: TableEvidence) -> Iterator[tuple[str, str]]:
    for path, seen, type_ in looked.typed(PRESENT):
        if seen.files[type_] < seen.files.total():
            yield f"{path}: {type_to_ddl(type_)}", "files shred the same paths as different types"
