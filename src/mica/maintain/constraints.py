"""CHECK constraints, added and dropped.

The rule: a constraint is added only if every existing row fulfils it: files are read unless their bounds prove it, and
a commit of another writer in between is a conflict.

Source: PROTOCOL.md, "CHECK Constraints"; operations named as delta-spark names them.
"""

from __future__ import annotations

from dataclasses import replace

from mica.errors import UserError
from mica.expressions.bind import bind
from mica.expressions.collations import refuse_in_process
from mica.log import features
from mica.log.snapshot import Snapshot
from mica.maintain.alter import changed, writable
from mica.properties import CONSTRAINTS
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.tasks.leaf_values import distinct
from mica.tasks.row_errors import told
from mica.write.check_texts import of_spark
from mica.write.rules import constraints


def add_constraint(before: Snapshot, name: str, expr: str, ansi: bool, timezone: str) -> Snapshot:
    """See `Table.add_constraint`; the settings are those by which existing rows are judged."""
    writable(before)
    refuse_name(name)
    key = f"{CONSTRAINTS}{name.lower()}"
    if key in {known.lower() for known in before.properties}:
        raise UserError(
            "CONSTRAINT_EXISTS",
            f"{before.storage} has the constraint {name!r} already: {constraints(before.properties).get(name.lower())}",
            hint="Give another name, or drop that one first.",
        )
    expr = of_spark(expr, before.schema)
    bound = bind(expr, before.schema, partition_columns=before.partition_columns, ansi=ansi, timezone=timezone)
    refuse_in_process(bound.expr)
    refuse_violations(before, f"the CHECK constraint {name!r}", f"({expr})", expr, ansi, timezone)
    protocol = features.upgraded(before.protocol, {"checkConstraints"})
    metadata = before.metadata.with_configuration({key: expr})
    return changed(before, "ADD CONSTRAINT", {"name": name, "expr": expr}, protocol, metadata, rests_on_files=True)


def drop_constraint(before: Snapshot, name: str, *, if_exists: bool) -> Snapshot:
    """See `Table.drop_constraint`."""
    writable(before)
    key = next((k for k in before.properties if k.lower() == f"{CONSTRAINTS}{name.lower()}"), None)
    if key is None and if_exists:
        return before
    if key is None:
        known = ", ".join(constraints(before.properties)) or "none"
        raise UserError(
            "UNKNOWN_CONSTRAINT", f"{before.storage} has no constraint {name!r}", hint=f"Its constraints: {known}."
        )
    parameters = {"name": name, "expr": before.properties[key], "existed": True}
    metadata = before.metadata.with_configuration({key: None})
    return changed(before, "DROP CONSTRAINT", parameters, before.protocol, metadata)


def refuse_name(name: str) -> None:
    """Refuses a name that no constraint can have. Errors: INVALID_NAME."""
    if not name or any(c in name for c in " ,;{}()\n\t=`"):
        raise UserError("INVALID_NAME", f"a constraint cannot be called {name!r}", hint="Use letters, digits and _.")


def refuse_violations(
    before: Snapshot, what: str, shown: str, expr: str, ansi: bool = True, timezone: str = "UTC"
) -> None:
    """Refuses a condition that existing rows violate. Errors: CONSTRAINT_VIOLATED with the values of one."""
    # The line breaks end a comment in the given text.
    wrong = Scan(TableSource(before), f"NOT ({expr}\n) OR ({expr}\n) IS NULL", None, 1, ansi, timezone)
    leaves = [] if wrong.predicate is None else distinct(wrong.predicate.leaves)
    columns = {leaf.name: leaf.name for leaf in leaves} or None
    wrong_values = replace(wrong, columns=columns)
    found = wrong_values.to_arrow()
    if found.num_rows:
        row = ", ".join(
            f"{f.name} = {told(values.combine_chunks(), f.type)}"
            for f, values in zip(wrong_values.schema, found.columns, strict=True)
        )
        raise UserError(
            "CONSTRAINT_VIOLATED",
            f"a row of {before.storage} violates {what} {shown}: {row}",
            hint="Correct or delete such rows first; scan with NOT (…) OR (…) IS NULL finds them.",
            constraint=what,
        )
