"""What PARTITION (p = 1, …) of a statement says: values as the log has them.

The rule: a value is judged once, with ANSI and without: of one that became null an INSERT would put its rows into the
null partition, or replace it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mica.engines.spark.types import type_text
from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.schema.char import declared, padded
from mica.schema.ddl import type_to_ddl
from mica.schema.types import StructField, StructType
from mica.stats.partition import format_values

if TYPE_CHECKING:
    from mica.table import Table


def fixed_values(table: Table, partition: Mapping[str, str | None], timezone: str) -> dict[str, str | None]:
    """The columns that PARTITION gives a value, with its text in the log. Errors: INVALID_PARTITION_COLUMN, and
    INVALID_CAST for a value that the column cannot hold."""
    found = {}
    for name, value in partition.items():
        column = table.schema.find(name)
        if column is None or column.name not in table.partition_by:
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"PARTITION names {name!r}, which is not a partition column",
                hint=f"Partition columns are: {', '.join(table.partition_by) or 'none'}.",
                column=name,
            )
        if value is not None:
            found[column.name] = _stored(value, column, timezone)
    return found


def _stored(value: str, column: StructField, timezone: str) -> str | None:
    """A value of PARTITION as the log has it: an empty text is null (PROTOCOL.md, "Partition Value Serialization"), a
    CHAR(n) has its blanks. Errors: INVALID_CAST for one that the column cannot hold."""
    # As Spark, for which these values are texts first.
    cast = f"CAST(CAST({value} AS STRING) AS {type_text(column.type)})"
    try:
        found = evaluate(bind_value(cast, StructType(), ansi=True, timezone=timezone), [], num_rows=1)
    except UserError as e:
        if e.code != "INVALID_CAST":
            raise
        raise UserError(
            "INVALID_CAST",
            f"PARTITION gives the column {column.name!r} the value {value}, which is no {type_to_ddl(column.type)}",
            hint="Give it a value of its type, or NULL.",
            column=column.name,
        ) from None
    text: str | None = format_values(padded(found, declared(column)), column.type)[0].as_py()
    return text
