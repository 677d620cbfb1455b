"""The functions of expressions.

The rule: a function is one row of the table: the types its arguments are cast to, its result type, and how it is
evaluated over arrays. It is null if an argument is, unless `of_null` is set; it never depends on a row's position.

| function | arguments | returns |
|---|---|---|
| like, `x LIKE y ESCAPE z` | string, string, a constant | boolean |
| startswith, endswith, contains | two strings, or two binary | boolean |
| concat, `a || b` | strings, or all binary | string, or binary |
| lower, upper, trim, ltrim, rtrim | string | string |
| length, char_length | string or binary | int |
| substring, substr | string, two constants | string |
| year, month, day, dayofmonth | date | int |
| hour, minute, second | timestamp_ntz | int |
| date_add, date_sub | date, int | date |
| datediff, date_diff | two dates | int |
| timestamp_micros, timestamp_millis | an integer | timestamp |
| unix_micros, unix_millis, unix_seconds | timestamp | bigint |
| to_json | variant | string |
| is_variant_null | variant | boolean: true for a JSON null; false for a missing value |
| schema_of_variant | variant | string: the physical type; only this function distinguishes an integer from a decimal |

Arithmetic has separate rules: `arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mica.expressions import strings, texts, times
from mica.expressions.compare import Datum
from mica.expressions.tree import Call, Literal
from mica.schema.types import BOOLEAN, DATE, INTEGER, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, VARIANT, DataType
from mica.variant import kernel
from mica.variant.values import to_json

#: The encoding of a JSON null: a primitive of type 0. Source: Parquet "VariantEncoding", "Value Data for Primitives".
_NULL = b"\x00"


@dataclass(frozen=True, slots=True)
class Function:
    """`parameters` are the types of the arguments; the last `optional` of them may be omitted."""

    parameters: tuple[DataType, ...]
    result: DataType
    #: Returns the values, or the values and the mask of rows that fail.
    evaluate: Callable[..., Any]
    optional: int = 0
    #: If all arguments are binary, they stay binary, and a string result becomes binary.
    binary: bool = False
    #: How many of the last parameters must be constants.
    constants: int = 0
    #: Whether the last parameter may be repeated any number of times.
    repeats: bool = False
    #: Whether strings are compared by their collation.
    compares: bool = False
    #: Whether only integers and NULL are cast for it.
    exact: bool = False
    #: Whether the session's time zone is passed as an additional argument.
    zoned: bool = False


def pattern_of(call: Call) -> strings.Pattern | None:
    """Returns the constant pattern that the value's bytes must match: of LIKE with a constant, and of startswith.

    Raises ValueError for an invalid pattern.
    """
    if call.collation is not None:
        return None
    constants = [a.value for a in call.args[1:] if isinstance(a, Literal) and isinstance(a.value, str)]
    if len(constants) != len(call.args) - 1:
        return None
    if call.name == "startswith":
        return strings.Pattern((constants[0], strings.ANY) if constants[0] else (strings.ANY,))
    return strings.Pattern.read(*constants) if call.name == "like" else None


def _is_variant_null(values: Datum) -> pa.Array:
    return pc.fill_null(pc.equal(pc.struct_field(values, "value"), pa.scalar(_NULL, _value_type(values))), False)


def _value_type(values: Datum) -> pa.DataType:
    return values.type.field("value").type


def _schema_of_variant(values: Datum) -> pa.Array:
    return kernel.type_texts(pa.record_batch([values], names=["v"])).column(0)


def _to_json(values: Datum, timezone: str) -> pa.Array:
    return to_json(values, timezone=timezone)


FUNCTIONS: Mapping[str, Function] = {
    "like": Function((STRING, STRING, STRING), BOOLEAN, strings.like, optional=1, constants=1, compares=True),
    "startswith": Function((STRING, STRING), BOOLEAN, strings.starts_with, binary=True, compares=True),
    "endswith": Function((STRING, STRING), BOOLEAN, strings.ends_with, binary=True, compares=True),
    "contains": Function((STRING, STRING), BOOLEAN, strings.contains, binary=True, compares=True),
    "concat": Function((STRING,), STRING, texts.concat, binary=True, repeats=True),
    "lower": Function((STRING,), STRING, texts.lower),
    "upper": Function((STRING,), STRING, texts.upper),
    "trim": Function((STRING,), STRING, texts.trim),
    "ltrim": Function((STRING,), STRING, texts.ltrim),
    "rtrim": Function((STRING,), STRING, texts.rtrim),
    "length": Function((STRING,), INTEGER, texts.length, binary=True),
    "substring": Function((STRING, INTEGER, INTEGER), STRING, texts.substring, optional=1, constants=2),
    "year": Function((DATE,), INTEGER, times.part("year")),
    "month": Function((DATE,), INTEGER, times.part("month")),
    "day": Function((DATE,), INTEGER, times.part("day")),
    "hour": Function((TIMESTAMP_NTZ,), INTEGER, times.part("hour")),
    "minute": Function((TIMESTAMP_NTZ,), INTEGER, times.part("minute")),
    "second": Function((TIMESTAMP_NTZ,), INTEGER, times.part("second")),
    "date_add": Function((DATE, INTEGER), DATE, times.date_add),
    "date_sub": Function((DATE, INTEGER), DATE, times.date_sub),
    "datediff": Function((DATE, DATE), INTEGER, times.datediff),
    "timestamp_micros": Function((LONG,), TIMESTAMP, times.from_unit(1), exact=True),
    "timestamp_millis": Function((LONG,), TIMESTAMP, times.from_unit(1_000), exact=True),
    "unix_micros": Function((TIMESTAMP,), LONG, times.to_unit(1), exact=True),
    "unix_millis": Function((TIMESTAMP,), LONG, times.to_unit(1_000), exact=True),
    "unix_seconds": Function((TIMESTAMP,), LONG, times.to_unit(1_000_000), exact=True),
    "to_json": Function((VARIANT,), STRING, _to_json, zoned=True),
    "is_variant_null": Function((VARIANT,), BOOLEAN, _is_variant_null),
    "schema_of_variant": Function((VARIANT,), STRING, _schema_of_variant),
}

#: Other names of functions.
ALIASES: Mapping[str, str] = {
    "char_length": "length", "character_length": "length", "len": "length", "lcase": "lower", "ucase": "upper",
    "substr": "substring", "dayofmonth": "day", "dateadd": "date_add", "date_diff": "datediff",
}  # fmt: skip
