"""Which values may be assigned to a column by an update or a merge, and how they are cast.

The rule is Spark's ANSI store assignment: a value is cast to the column's type if no valid value of its type is
surprising there. Without ANSI mode only casts that cannot overflow are allowed, since others would wrap around
silently. Other casts must be written.

Source: Spark SQL reference, "ANSI Compliance", "Store assignment"; Spark's Cast.canANSIStoreAssign.
"""

from __future__ import annotations

from mica.errors import UserError
from mica.expressions.coerce import holds, is_exact, is_real
from mica.expressions.tree import Cast, Expr
from mica.schema.ddl import type_to_ddl
from mica.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    StructField,
)


def stored(value: Expr, given: DataType, column: StructField, text: str, *, ansi: bool) -> Expr:
    """The value, of type `given`, in the column's type; `text` is how it was written. Errors: INCOMPATIBLE_TYPE."""
    if given == column.type:
        return value
    if not assignable(given, column.type, ansi=ansi):
        wanted = type_to_ddl(column.type)
        raise UserError(
            "INCOMPATIBLE_TYPE",
            f"the column {column.name!r} is {wanted}, and {text} is {type_to_ddl(given)}",
            hint=f"Cast it: cast({text} AS {wanted}).",
            column=column.name,
        )
    return Cast(value, column.type)


def assignable(given: DataType, wanted: DataType, *, ansi: bool) -> bool:
    """Whether a value may be stored in a column without an explicit cast: see the rule of this module."""
    times = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    if given == VOID or wanted == STRING:
        return given == VOID or is_exact(given) or is_real(given) or given in (*times, BOOLEAN)
    if given in times:
        return wanted in times
    if is_exact(given) and is_exact(wanted):
        return ansi or holds(wanted, given)
    if is_exact(given) or is_real(given):
        return (is_exact(wanted) and ansi) or wanted == DOUBLE or (wanted == FLOAT and ansi)
    return False


def unquoted(name: str) -> str:
    """A column's name without its backticks."""
    quoted = len(name) > 1 and name[0] == name[-1] == "`"
    return name[1:-1].replace("``", "`") if quoted else name
