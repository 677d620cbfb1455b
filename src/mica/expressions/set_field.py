"""A struct with another value in one field: what `SET s.x = …` assigns to `s`.

The rule: the other fields stay, and a null struct becomes one whose other fields are null, as in delta-spark. The
result has exactly the type of the struct. Only updates and merges make such a call; no text does.

Source: delta-spark's UpdateExpressionsSupport (`generateUpdateExpressions`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from mica import compute as pc
from mica.expressions.tree import Call, Cast, Column, Expr, Literal
from mica.schema.types import STRING

#: The call: the struct, the field's name, its value.
NAME = "set field"


def with_field(struct: Expr, name: str, value: Expr) -> Call:
    """Builds the call."""
    return Call(NAME, (struct, Literal(name, STRING), value))


def field_of(expr: Expr, names: Sequence[str]) -> Expr:
    """The field at these names (as the schema spells them) of a struct."""
    for at, name in enumerate(names):
        while isinstance(expr, Call) and expr.name == NAME:
            struct, own, value = expr.args
            if isinstance(own, Literal) and own.value == name:
                expr = value
                break
            expr = struct
        else:
            bare = expr.child if isinstance(expr, Cast) else expr
            if isinstance(bare, Literal) and bare.value is None:
                return bare
            if isinstance(expr, Column):
                return Column((*expr.names, *names[at:]))
            expr = Call(".", (expr, Literal(name, STRING)))
    return expr


def replaced(structs: pa.StructArray, name: str, values: pa.Array) -> pa.StructArray:
    """The structs with these values in the field."""
    fields = list(structs.type)
    # flatten keeps the nulls of the structs: the other fields of a null one are null.
    own = zip(fields, structs.flatten(), strict=True)
    children = [pc.as_type(values if f.name == name else child, f.type) for f, child in own]
    return pa.StructArray.from_arrays(children, fields=fields)
