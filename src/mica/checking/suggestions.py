"""What would make a table easier and faster to read: suggestions, each with its reason and the command that applies it.

The rule: a suggestion follows from what the table's files hold, and changes nothing. A kind of suggestion is a function
of `KINDS`, from a survey of the files to at most one suggestion.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mica.arguments import OPTIONS, TABLE, takes
from mica.checking import shredding_rules
from mica.checking.evidence import TYPED, Suggestion, TableEvidence, gather
from mica.checking.survey import ColumnPath
from mica.log import clustering
from mica.log.opened import Opened, table_of
from mica.properties import BLOOM_PATHS, SHREDDING_RULES, TYPED_PATHS, VARIANT_STATS_NAMES, VARIANT_STATS_PATHS
from mica.schema.ddl import type_to_ddl
from mica.schema.spelling import quote_if_needed, spelled
from mica.schema.types import STRING
from mica.wording import counted

#: At most so many typed paths.
PATHS = 100

#: What concerns the reading of few files among many is suggested from so many files on.
MANY = 4

#: A path that queries may name is in at least this share of the rows.
FREQUENT = 0.3

#: Strings that take so many bytes each after compression are nearly all different.
DIFFERENT = 12

#: Ranges meet widely if one meets those of this share of the files.
WIDE = 0.5

#: At most so many bloom filters, and paths to order by: each takes space, or makes the others' order worse.
BLOOMS, ORDERS = 3, 2

#: A value of a time, in seconds, milliseconds, microseconds or nanoseconds since 1970, between 2000 and 2100.
_EPOCHS = [(946_684_800 * unit, 4_102_444_800 * unit) for unit in (1, 10**3, 10**6, 10**9)]


@takes(table=TABLE, storage_options=OPTIONS)
def suggest(
    table: str | os.PathLike[str] | Opened, storage_options: Mapping[str, str] | None = None
) -> list[Suggestion]:
    """Returns what would make a table easier and faster to read; nothing is changed. Of each kind there is at most one,
    with the `reason`, the `value` and the `command` that applies it.

    - `typed_paths`: the paths of its Variants that have one type, as the DDL of `format("mica")`'s option `typedPaths`
      and of the property `mica.paths`: readers that know no Variant see them as columns, and filters on them skip. The
      details are `name`, `type`, `path`, `rows` (the share of the rows that have it) and `typed` (the share of its
      values that have the type; the others are read as null).
    - `shredding`: rules for `mica.shredding` where files shred one path differently, or objects into many columns that
      few rows have.
    - `bounds`: paths with a range that the log has no bounds of, for `mica.variantStats.paths`.
    - `bloom_filters`: identifiers that all files have in the same range, for `mica.bloomFilter.paths`.
    - `order`: paths whose ranges meet in most files, for `optimize --zorder-by`.

    `table` is a path or an open table. At most 32 of its files are looked at, their footers and statistics alone.

    Errors: those of `Table.open`.
    """
    snapshot = table_of(table, storage_options)
    looked = gather(snapshot)
    return [found for one in KINDS if (found := one(looked)) is not None]


def _typed_paths(looked: TableEvidence) -> Suggestion | None:
    details, taken = list[dict[str, Any]](), {name.lower() for name in looked.snapshot.schema.names}
    for path, seen, type_ in looked.typed():
        if len(details) == PATHS:
            break
        name = _name(path, taken)
        taken.add(name.lower())
        shares = {"rows": round(seen.total / looked.rows, 4), "typed": round(seen.share(type_), 4)}
        details.append({"name": name, "type": type_to_ddl(type_), "path": str(path), **shares})
    outer = [column for column in looked.variants if len(column) == 1]
    value = ", ".join(_ddl(one, outer[0] if len(outer) == 1 else None) for one in details)
    if not details or value == TYPED_PATHS.of(looked.snapshot.properties):
        return None
    return Suggestion(
        "typed_paths",
        value,
        f"of {counted(len(details), 'path')} at least {TYPED:.0%} of the values have one type ({looked.rows:,} rows "
        f"in {looked.files:,} of {looked.total_files:,} files): columns are read without VARIANT, and filters on them "
        "skip",
        _alter(looked, TYPED_PATHS.name, value),
        details,
    )


def _name(path: ColumnPath, taken: set[str]) -> str:
    """The last steps of a path that no other column is named by."""
    steps = list(map(str, path.steps))
    names = ["_".join(steps[-count:]) for count in range(1, len(steps) + 1)]
    free = next((name for name in names if name.lower() not in taken), None)
    number = 2
    while free is None or free.lower() in taken:
        free, number = f"{names[-1]}_{number}", number + 1
    return free


def _ddl(path: Mapping[str, Any], own: Sequence[str] | None) -> str:
    """A column of typed paths. A field of the table's only Variant outside of structs needs no path."""
    name = quote_if_needed(path["name"])
    short = own is not None and path["path"] == f"{spelled(own)}:{name}"
    return f"{name} {path['type']}" if short else f"{name} {path['type']} AS {path['path']}"


def _shredding(looked: TableEvidence) -> Suggestion | None:
    details = list(shredding_rules.rules(looked))
    if not details:
        return None
    kept = SHREDDING_RULES.of(looked.snapshot.properties)
    value = ", ".join([*([] if kept is None else [kept]), *(one["rule"] for one in details)])
    return Suggestion(
        "shredding",
        value,
        "; ".join(dict.fromkeys(one["reason"] for one in details)),
        f"{_alter(looked, SHREDDING_RULES.name, value)} && mica reshred {_table(looked)}",
        details,
    )


def _bounds(looked: TableEvidence) -> Suggestion | None:
    if looked.files < MANY or VARIANT_STATS_NAMES.of(looked.snapshot.properties) is not None:
        return None
    ranged = [(str(path), seen) for path, seen, type_ in looked.typed(FREQUENT) if type_ != STRING]
    missing = {path: seen for path, seen in ranged if not seen.ranges}
    if not missing:
        return None
    chosen = [*missing, *(str(path) for path, seen, _ in looked.typed() if seen.ranges)]
    value = ", ".join(chosen)
    most = VARIANT_STATS_PATHS.of(looked.snapshot.properties) * len(looked.variants)
    room = f" --set {VARIANT_STATS_PATHS.name}={len(chosen)}" if len(chosen) > most else ""
    return Suggestion(
        "bounds",
        value,
        f"{_few(missing)} have numbers or times in at least {FREQUENT:.0%} of the rows, "
        "and no bounds in the log: a condition on them skips no file",
        f"{_alter(looked, VARIANT_STATS_NAMES.name, value)}{room} && mica restats {_table(looked)}",
        [{"path": path, "rows": round(seen.total / looked.rows, 4)} for path, seen in missing.items()],
    )


def _bloom_filters(looked: TableEvidence) -> Suggestion | None:
    if looked.files < MANY:
        return None
    kept = BLOOM_PATHS.of(looked.snapshot.properties) or ()
    details = list[dict[str, Any]]()
    for path, seen, type_ in looked.typed(FREQUENT):
        depth = seen.depth
        narrow = depth is not None and depth < WIDE * len(seen.ranges)
        if type_ == STRING and seen.value_bytes >= DIFFERENT and not narrow and str(path) not in kept:
            share = {"rows": round(seen.total / looked.rows, 4), "bytes_per_value": round(seen.value_bytes)}
            details.append({"path": str(path), **share})
    details = details[:BLOOMS]
    if not details:
        return None
    value = ", ".join([*kept, *(one["path"] for one in details)])
    return Suggestion(
        "bloom_filters",
        value,
        f"the values of {_few(one['path'] for one in details)} are nearly all different (at least {DIFFERENT} bytes "
        "each after compression), and files have them in the same range: for one value only a bloom filter skips. "
        "It is written into the files that come after",
        _alter(looked, BLOOM_PATHS.name, value),
        details,
    )


def _order(looked: TableEvidence) -> Suggestion | None:
    if looked.files < MANY or clustering.cluster_by(looked.snapshot):
        return None
    found = list[tuple[bool, float, str, float]]()
    for path, seen, type_ in looked.typed(FREQUENT):
        depth, files = seen.depth, len(seen.ranges)
        if depth is None or files < MANY or depth < WIDE * files or type_ == STRING:
            continue
        if any(low.value != high.value for low, high in seen.ranges):
            found.append((not _is_time(seen.ranges[0][0].value), -seen.value_bytes, str(path), depth / files))
    details = [{"path": name, "overlap": round(share, 4)} for _, _, name, share in sorted(found)[:ORDERS]]
    if not details:
        return None
    names, overlap = [str(one["path"]) for one in details], min(found)[3]
    value = ", ".join(names)
    keys = " ".join(f"--zorder-by {shlex.quote(name)}" for name in names)
    return Suggestion(
        "order",
        value,
        f"a file's range of {_few(names, 1)} meets those of {overlap:.0%} of the files: if queries have conditions on "
        "it, rows in its order let them skip the others",
        f"mica optimize {_table(looked)} {keys}",
        details,
    )


def _is_time(value: object) -> bool:
    """Whether a number may be a time."""
    return isinstance(value, int) and any(low <= value < high for low, high in _EPOCHS)


def _few(paths: Iterable[str], most: int = 3) -> str:
    """Some paths in a sentence."""
    names = list(paths)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _table(looked: TableEvidence) -> str:
    return shlex.quote(str(looked.snapshot.storage))


def _alter(looked: TableEvidence, name: str, value: str) -> str:
    return f"mica alter {_table(looked)} --set {shlex.quote(f'{name}={value}')}"


#: The kinds of suggestions.
KINDS: Sequence[Callable[[TableEvidence], Suggestion | None]] = (
    _typed_paths,
    _shredding,
    _bounds,
    _bloom_filters,
    _order,
)
