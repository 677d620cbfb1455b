"""Writes the statement that makes a table like another: SHOW CREATE TABLE.

The rule: `mica.sql` takes the text, and the table that it makes has the same columns, partitions, clustering, features
and properties, but for what each writer of a table sets for itself. Constraints follow as comments: a table has them
by statements of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from mica.log import clustering
from mica.log.configuration import needed_features
from mica.log.creation import schema_features
from mica.log.features import minimal_protocol
from mica.properties import CONSTRAINTS, ENABLE_SHREDDING, FEATURE, NAMES_OF_WRITERS
from mica.query.names import is_path
from mica.schema import char, special
from mica.schema.ddl import to_ddl
from mica.schema.literals import show
from mica.schema.spelling import quote_if_needed, quoted, spelled
from mica.schema.types import STRING, VARIANT, StructField, StructType, contains

if TYPE_CHECKING:
    from mica.table import Table


def create_text(table: Table, name: tuple[str, ...]) -> str:
    """The statement; `name` is the table's in it. A name that is no path gets the table's place beside it."""
    named = f"{name[0]}.{quoted(name[1])}" if is_path(name) else spelled(name)
    by = clustering.cluster_by(table.snapshot)
    columns = [f"  {column_text(f)}" for f in char.sized(table.schema).fields]
    parts = [f"CREATE TABLE {named}" + (f" (\n{_listed(columns)})" if columns else ""), "USING mica"]
    if table.partition_by:
        parts.append(f"PARTITIONED BY ({', '.join(map(quote_if_needed, table.partition_by))})")
    if by:
        parts.append(f"CLUSTER BY ({', '.join(by)})")
    if not is_path(name):
        parts.append(f"LOCATION {literal(table.path)}")
    if table.metadata.description is not None:
        parts.append(f"COMMENT {literal(table.metadata.description)}")
    given = _properties(table, clustered=bool(by))
    pairs = [f"  {literal(key)} = {literal(value)}" for key, value in sorted(given.items())]
    if pairs:
        parts.append(f"TBLPROPERTIES (\n{_listed(pairs)})")
    return "\n".join([*parts, *_constraints(table, named)])


def literal(text: str) -> str:
    """A text as Spark SQL spells it."""
    return show(text, STRING)


def _listed(lines: Iterable[str]) -> str:
    return ",\n".join(lines)


def column_text(f: StructField) -> str:
    """A column with its default, and with how its values are generated."""
    generated = f.metadata.get(special.GENERATED)
    text = to_ddl(StructType((f,)))
    if isinstance(generated, str):
        return f"{text} GENERATED ALWAYS AS ({generated})"
    if special.IDENTITY_START in f.metadata:
        kind = "BY DEFAULT" if f.metadata.get(special.IDENTITY_EXPLICIT) else "ALWAYS"
        start, step = f.metadata[special.IDENTITY_START], f.metadata.get(special.IDENTITY_STEP, 1)
        return f"{text} GENERATED {kind} AS IDENTITY (START WITH {start} INCREMENT BY {step})"
    return text


def _properties(table: Table, *, clustered: bool) -> Mapping[str, str]:
    """The properties to give, with the features that nothing else in the statement asks for."""
    given = {
        name: text
        for name, text in table.properties.items()
        if name not in NAMES_OF_WRITERS and not name.startswith(CONSTRAINTS)
    }
    if contains(table.schema, VARIANT):
        given.setdefault(ENABLE_SHREDDING.name, "false")  # a new table would have it
    asked = schema_features(table.schema) | needed_features(given) | ({"clustering"} if clustered else set())
    implied = minimal_protocol(asked)
    own = table.protocol.reader_features | table.protocol.writer_features
    more = own - implied.reader_features - implied.writer_features - asked
    return {**given, **{f"{FEATURE}{name}": "supported" for name in more}}


def _constraints(table: Table, named: str) -> Iterator[str]:
    for name, text in sorted(table.properties.items()):
        if name.startswith(CONSTRAINTS):
            rule = quote_if_needed(name.removeprefix(CONSTRAINTS))
            line = f"ALTER TABLE {named} ADD CONSTRAINT {rule} CHECK ({text})"
            yield from (f"-- {part}" for part in line.splitlines())
