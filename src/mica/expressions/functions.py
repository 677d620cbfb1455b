"""The functions of expressions.

The rule: a function is a line of the table: what its arguments are cast to, what type it gives, and how whole arrays
are judged. It is null where an argument is, unless it says `of_null`; it never depends on a row's place.

| function | arguments | gives |
|---|---|---|
| like, `x LIKE y ESCAPE z` | string, string, a constant | boolean |
| startswith, endswith, contains | two strings, or two binary | boolean |
| is_variant_null | variant | boolean: a JSON null; false where there is nothing |
| schema_of_variant | variant | string: the physical type, the one thing that tells an integer from a decimal |

Arithmetic has rules of its own: `arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mica.expressions import strings
from mica.expressions.compare import Datum
from mica.expressions.tree import Call, Literal
from mica.schema.types import BOOLEAN, STRING, VARIANT, DataType
from mica.variant import kernel

#: The encoding of a JSON null: a primitive of type 0. Source: Parquet "VariantEncoding", "Value Data for Primitives".
_NULL = b"\x00"


@dataclass(frozen=True, slots=True)
class Function:
    """`parameters` are the types of its arguments; the last `optional` of them may be missing, and are constants."""

    parameters: tuple[DataType, ...]
    result: DataType
    evaluate: Callable[..., pa.Array]
    optional: int = 0
    #: Two binary arguments stay binary.
    binary: bool = False


def pattern_of(call: Call) -> strings.Pattern | None:
    """The constant pattern that the value's bytes must match: of LIKE with a constant, and of startswith.

    ValueError: none.
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


FUNCTIONS: Mapping[str, Function] = {
    "like": Function((STRING, STRING, STRING), BOOLEAN, strings.like, optional=1),
    "startswith": Function((STRING, STRING), BOOLEAN, strings.starts_with, binary=True),
    "endswith": Function((STRING, STRING), BOOLEAN, strings.ends_with, binary=True),
    "contains": Function((STRING, STRING), BOOLEAN, strings.contains, binary=True),
    "is_variant_null": Function((VARIANT,), BOOLEAN, _is_variant_null),
    "schema_of_variant": Function((VARIANT,), STRING, _schema_of_variant),
}
