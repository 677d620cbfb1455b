"""`option("replaceUsing", "id")` of a DataFrame's writer in an enabled session, as delta-spark takes it.

The rule: the rows replace those of the table that have the same values in these columns (`write/replace_using`), which
a Python data source cannot do: it sees the rows in its tasks only. Where there is no table, they make one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mica.errors import UserError
from mica.format.options import Options
from mica.log.snapshot import load
from mica.log.user_metadata import user_metadata
from mica.query import settings
from mica.query.frames import narrowed
from mica.storage import Storage
from mica.table import Table
from mica.write.target import open_target

#: What chooses other rows to replace, or is not known of files that a change of rows writes.
_OTHERS = ("replaceWhere", "overwriteSchema", "compression")


def replaced(writer: Any, storage: Storage, given: Mapping[str, str], mode: str, partition_by: list[str]) -> None:
    """Overwrites rows of the table at a place; `given` are the options by their names in lower case. Errors: those of
    `Table.overwrite`; INVALID_ARGUMENT for another mode or beside an option that says something else."""
    options, session = Options.of(given), writer._spark  # noqa: SLF001
    using = options.names("replaceUsing") or []
    if mode != "overwrite":
        raise UserError.bad_value("replaceUsing", ", ".join(using), 'an option of mode("overwrite")')
    for name in _OTHERS:
        if options.text(name) not in (None, "false"):
            message = f"replaceUsing ({', '.join(using)}) says which rows are replaced, and takes no {name}"
            raise UserError("INVALID_ARGUMENT", message, hint="Leave one of them out.")
    table = Table(load(storage))
    open_target(storage, table.snapshot, table.schema, partition_by, mode="append", properties={})
    app, version = options.text("txnAppId"), options.version("txnVersion")
    txn = settings.txn(session) if app is None or version is None else (app, version)
    rows = narrowed(writer._df) or writer._df  # noqa: SLF001
    evolves = options.flag("mergeSchema") or settings.evolves(session)
    with user_metadata(options.text("userMetadata") or settings.user_metadata(session)):
        table.overwrite(rows, using=using, schema_evolution=evolves, txn=txn)
