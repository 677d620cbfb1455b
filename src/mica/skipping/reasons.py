"""Why files were skipped, for people and for programs.

The rule: the reason for a skipped file is the first part of the predicate that no row in it can make true. The bounds
shown are the deciding ones, cast to the type in the predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from mica.expressions.bind import BoundExpr
from mica.expressions.collations import collations_of
from mica.expressions.plain_values import to_values
from mica.expressions.tree import Expr, LeafRef, to_sql, walk
from mica.schema import literals
from mica.schema.types import STRING, DataType
from mica.skipping.file_plan import FilePlan
from mica.skipping.intervals import Interval

#: The path of a file by its number.
PathOf = Callable[[int], str]

#: A leaf's source text, its type, and what is known about it in one file.
_Known = tuple[str, DataType, dict[str, Any]]


def dropped_files(plan: FilePlan, path_of: PathOf, limit: int | None = None) -> list[dict[str, Any]]:
    """Returns `{path, bounds, reason}` of each skipped file in log order, up to `limit` if given."""
    return [
        {"path": path_of(file), "bounds": bounds, "reason": f"no row can satisfy {part}: {facts}"}
        for file, part, facts, bounds in _details(plan, limit)
    ]


def dropped_by_part(plan: FilePlan, path_of: PathOf, limit: int | None = None) -> dict[str, list[tuple[str, str]]]:
    """The same by the part of the predicate that no row can satisfy: path and what is known of each file."""
    found: dict[str, list[tuple[str, str]]] = {}
    for file, part, facts, _ in _details(plan, limit):
        found.setdefault(part, []).append((path_of(file), facts))
    return found


def undecided_files(plan: FilePlan, path_of: PathOf) -> list[dict[str, Any]]:
    """Returns `{path, column, collation, reason}` of each kept file that a collated comparison could not decide."""
    return list(_undecided(plan, path_of))


def _undecided(plan: FilePlan, path_of: PathOf) -> Iterator[dict[str, Any]]:
    if plan.bound is None:
        return
    kept = np.zeros(plan.total, np.bool_)
    kept[plan.kept] = True
    for files, found in plan.collated:
        for (index, collation), evidence in found.evidence.items():
            column = plan.bound.leaves[index].name
            for file, why in zip(files.tolist(), evidence.why, strict=True):
                if why is not None and kept[file]:
                    yield {"path": path_of(file), "column": column, "collation": collation, "reason": why}


def other_versions(plan: FilePlan) -> str | None:
    """Returns a warning about files whose collated bounds are of other ICU versions; None without such files."""
    warnings = []
    for files, found in plan.collated:
        for (_, collation), evidence in found.evidence.items():
            others = [versions for versions in evidence.versions if versions]
            if others:
                shown = ", ".join(sorted({v for versions in others for v in versions}))
                warnings.append(
                    f"{len(others):,} of {len(files):,} files have bounds of {collation} in version {shown} only"
                )
    if not warnings:
        return None
    return (
        f"{'; '.join(warnings)}. This session has another version, so these files are kept. table.restats(spark=spark)"
        " writes bounds of its version"
    )


def _details(plan: FilePlan, limit: int | None) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """The number of each skipped file, the part of the predicate, what is known, and the bounds."""
    if plan.bound is None:
        return
    for file, number in list(zip(plan.dropped.tolist(), plan.reasons.tolist(), strict=True))[:limit]:
        part = plan.parts[number]
        known = list(_bounds(plan, plan.bound, part, file))
        bounds = {name: shown for name, _, shown in known}
        yield file, to_sql(part), _facts(known), bounds


def _bounds(plan: FilePlan, bound: BoundExpr, part: Expr, file: int) -> Iterator[_Known]:
    refs = {node.index: node for node in walk(part) if isinstance(node, LeafRef)}
    for files, intervals in plan.stages:
        at = int(np.searchsorted(files, file))
        if at == len(files) or files[at] != file or not refs.keys() <= intervals.keys():
            continue
        for index, ref in refs.items():
            type_ = bound.leaves[index].type
            yield ref.text, type_, _show(_collated(plan, part, index, files) or intervals[index], type_, at)


def _collated(plan: FilePlan, part: Expr, index: int, files: Any) -> Interval | None:
    """Returns the bounds that a collated part was evaluated on; None if it has no collation."""
    names = collations_of(part)
    for judged, found in plan.collated:
        evidence = found.evidence.get((index, names[0])) if names else None
        if evidence is not None and judged is files:
            plain = next(intervals[index] for rows, intervals in plan.stages if rows is files)
            return replace(plain, low=evidence.low, high=evidence.high)
    return None


def _show(interval: Interval, type_: DataType, at: int) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, side in (("min", interval.low), ("max", interval.high)):
        value = to_values(side.slice(at, 1), type_)[0]
        if value is not None:
            shown[name] = plain(value, type_)
    if interval.all_null[at].as_py():
        shown["all_null"] = True
    elif not interval.may_be_null[at].as_py():
        shown["no_nulls"] = True
    return shown


def plain(value: Any, type_: DataType) -> Any:
    """Converts a value for JSON: dates and timestamps as ISO texts, decimals as texts, binary in hexadecimal."""
    name = getattr(type_, "name", "")
    if name == "date":
        return literals.show_date(value)
    if name in ("timestamp", "timestamp_ntz"):
        return literals.show_timestamp(value).replace(" ", "T") + ("Z" if name == "timestamp" else "")
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.hex() if isinstance(value, bytes) else value


def _facts(known: list[_Known]) -> str:
    facts = []
    for name, type_, shown in known:
        low, high = (repr(v) if type_ == STRING else v for v in (shown.get("min"), shown.get("max")))
        if shown.get("all_null"):
            facts.append(f"{name} is null in every row")
        elif "min" in shown and low == high:
            facts.append(f"{name} is {low}")
        elif "min" in shown and "max" in shown:
            facts.append(f"{name} is between {low} and {high}")
        elif "min" in shown:
            facts.append(f"{name} is at least {low}")
        elif "max" in shown:
            facts.append(f"{name} is at most {high}")
        elif shown.get("no_nulls"):
            facts.append(f"{name} is never null")
    return "; ".join(facts) or "it is true for no row"
