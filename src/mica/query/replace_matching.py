"""The options `replaceUsing` and `replaceOn` of a DataFrame's writer in an enabled session, as delta-spark has them.

The rule: the rows replace those of the table that match one of them (`write/replace_matching`), which a Python data
source cannot do: it sees the rows in its tasks only. Where there is no table, they make one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mica.engines.spark.marks import is_mark
from mica.engines.spark.nodes import items
from mica.errors import UserError
from mica.format.options import Options
from mica.log.snapshot import load
from mica.log.user_metadata import user_metadata
from mica.query import settings
from mica.query.frames import narrowed
from mica.storage import Storage
from mica.table import Table
from mica.write.target import open_target

#: Options in lower case that say which rows match.
MATCHING = {"replaceusing", "replaceon"}
#: What chooses other rows to replace, or is not known of files that a change of rows writes.
_OTHERS = ("replaceWhere", "overwriteSchema", "partitionOverwriteMode", "compression")


def replaced(writer: Any, storage: Storage, given: Mapping[str, str], mode: str, partition_by: list[str]) -> None:
    """Overwrites rows of the table at a place; `given` are the options by their names in lower case. Errors: those of
    `Table.overwrite`; INVALID_ARGUMENT for another mode or beside an option that says something else."""
    options, session = Options.of(given), writer._spark  # noqa: SLF001
    using, on = options.names("replaceUsing"), options.text("replaceOn")
    name = "replaceOn" if using is None else "replaceUsing"
    if mode != "overwrite":
        raise UserError.bad_value(name, options.text(name), 'an option of mode("overwrite")')
    for other in _OTHERS if using is None else (*_OTHERS, "replaceOn"):
        if (options.text(other) or "").lower() not in ("", "false", "static"):
            message = f"{name} ({options.text(name)}) says which rows are replaced, and takes no {other}"
            raise UserError("INVALID_ARGUMENT", message, hint="Leave one of them out.")
    table = Table(load(storage))
    open_target(storage, table.snapshot, table.schema, partition_by, mode="append", properties={})
    app, version = options.text("txnAppId"), options.version("txnVersion")
    txn = settings.txn(session) if app is None or version is None else (app, version)
    rows = narrowed(writer._df) or writer._df  # noqa: SLF001
    evolves = options.flag("mergeSchema") or settings.evolves(session)
    with user_metadata(options.text("userMetadata") or settings.user_metadata(session)):
        table.overwrite(
            rows, using=using, on=on, source_alias="source" if on is None else _alias(writer._df),  # noqa: SLF001
            target_alias=options.text("targetAlias") or "target", schema_evolution=evolves, txn=txn,
        )  # fmt: skip


def refuse_matching(given: Iterable[str], method: str) -> None:
    """Refuses these options among those `given` to a method that replaces all rows. Errors: INVALID_ARGUMENT."""
    asked = {name.lower() for name in given}
    for name in ("replaceUsing", "replaceOn"):
        if name.lower() in asked:
            message = f"{method} does not look at {name}, and would replace all rows"
            hint = 'Leave it out; or write df.write.mode("overwrite").option(…).saveAsTable(…), which replaces by it.'
            raise UserError("INVALID_ARGUMENT", message, hint=hint)


def _alias(rows: Any) -> str:
    """What precedes the columns of a DataFrame in texts: its alias, or its table's name."""
    output = rows._jdf.queryExecution().analyzed().output()  # noqa: SLF001
    names = {str(qualifier.last()) for one in items(output) if (qualifier := one.qualifier()).nonEmpty()}
    return names.pop() if len(names) == 1 and not is_mark(min(names)) else "source"
