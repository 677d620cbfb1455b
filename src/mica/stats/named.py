"""Columns and Variant paths named by table properties.

The rule: names are matched case-insensitively. When a property is set, every name in it must exist and have a suitable
type. When it is read from an existing table, a list with an invalid path counts as not set, and names of missing
columns are ignored. A path means what it means in an expression, `v:a['b.c']`; any other text is Spark's, without `$.`.

| property | read by |
|---|---|
| `delta.dataSkippingStatsColumns` | `stats/columns.py`: the columns with statistics |
| `mica.variantStats.paths`: `v:a.b, s.v:c['d e']` | `stats/render.py`: the paths with bounds, in this order |
| `mica.bloomFilter.paths` | `stats/bloom_columns.py`: the paths with bloom filters |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mica.errors import UserError
from mica.properties import PATHS, SKIPPING_NAMES, Property, parse_names, split_commas
from mica.schema.lexical import QUOTED_NAME
from mica.schema.spelling import spelled
from mica.schema.types import VARIANT, DataType, StructType, variant_columns
from mica.stats.columns import IndexedColumn, is_ordered, leaves_of
from mica.variant.path import VariantPath

#: Lower-case names of a column, through structs, and a normalized path.
Named = tuple[tuple[str, ...], str]


def named_paths(known: Property[tuple[str, ...] | None], configuration: Mapping[str, str]) -> list[Named] | None:
    """Returns the paths that a property names; None if it is not set or cannot be read."""
    parts = known.of(configuration)
    try:
        return None if parts is None else [_path(part) for part in parts]
    except UserError:
        return None


def parse_paths(text: str) -> list[Named]:
    """Parses the paths of a property that is being set. Errors: INVALID_PROPERTY for a part that is not a path."""
    found = []
    for part in PATHS.parse(text) or ():
        try:
            found.append(_path(part))
        except UserError as e:
            what = f"{part!r} is not a variant path: {e.message}"
            raise UserError("INVALID_PROPERTY", what, hint=f"Write {PATHS.expected}.") from e
    return found


def _path(part: str) -> Named:
    names, colon, rest = _column(part)
    if not names or not colon:
        raise UserError("INVALID_PATH", "a column and a colon are expected")
    path = VariantPath.parse_sql(rest)
    if path is None:  # Spark's form without its $., where a plain key may hold blanks and quotes; $ alone is the root
        path = VariantPath.parse("$" + (rest if rest.startswith("[") else f".{rest}") if rest != "$" else "$")
    return tuple(n.lower() for n in names), path.normalized


#: A column and what follows it, from the first colon that is not in backticks.
_COLUMN = re.compile(rf"((?:{QUOTED_NAME}|[^:])*)(:?)(.*)", re.DOTALL)


def _column(part: str) -> tuple[tuple[str, ...], str, str]:
    """The names of the column of a part (none where it is no column), its colon, and what is behind it."""
    found = _COLUMN.fullmatch(part)
    assert found is not None
    columns = parse_names(found[1])
    return columns[0] if len(columns) == 1 else (), found[2], found[3]


def check_paths(name: str, text: str, schema: StructType, _: Iterable[str] = ()) -> None:
    """Raises UserError if the property `name` names anything but paths of the schema's variant columns."""
    variants = {tuple(n.lower() for n in at): ".".join(at) for at in variant_columns(schema)}
    for column, _ in parse_paths(text):
        if column not in variants:
            known = list(variants.values())
            raise UserError.unknown_column(".".join(column), known, what="variant column", property=name)


def without_columns(text: str, path: Sequence[str], name: str | None) -> str:
    """The text of a property that lists columns or paths, with the column at `path` and its fields under its new name,
    or (None) left out.
    """
    found = []
    for part in split_commas(text):
        (*names,), colon, rest = _column(part)
        if [n.lower() for n in names[: len(path)]] == [n.lower() for n in path]:
            if name is None:
                continue
            names = [*names[: len(path) - 1], name, *names[len(path) :]]
            part = spelled(names) + colon + rest  # noqa: PLW2901 - the same part, renamed
        found.append(part)
    return ", ".join(found)


def check_columns(text: str, schema: StructType, partition_columns: Iterable[str] = ()) -> None:
    """Raises UserError if `delta.dataSkippingStatsColumns` names a column without bounds, as delta-spark 4.4.0 does:
    a missing column, a partition column, a type without bounds, one column twice.
    """
    partitions = {name.lower() for name in partition_columns}
    named: set[tuple[str, ...]] = set()
    for parts in parse_names(text):
        shown = ".".join(parts)
        here: DataType = schema
        for part in parts:
            found = here.find(part) if isinstance(here, StructType) else None
            if found is None:
                known = [".".join(leaf.column) for leaf in leaves_of(schema) if leaf.has_bounds]
                raise UserError.unknown_column(shown, known, property=SKIPPING_NAMES.name)
            here = found.type
        if parts[0].lower() in partitions:
            raise _no_bounds(shown, "a partition column: the log has its values")
        if not isinstance(here, StructType) and not (is_ordered(here) or here == VARIANT):
            raise _no_bounds(shown, "of a type without bounds")
        below = leaves_of(here) if isinstance(here, StructType) else [IndexedColumn((), (), here)]
        for leaf in below:
            name = tuple(n.lower() for n in (*parts, *leaf.column))
            if name in named:
                raise _no_bounds(".".join(name), "named twice")
            named.add(name)


def _no_bounds(name: str, why: str) -> UserError:
    hint = "Name columns and struct fields of plain ordered types, or variants."
    return UserError("INVALID_PROPERTY", f"{SKIPPING_NAMES.name} names {name!r}, which is {why}", hint=hint)
