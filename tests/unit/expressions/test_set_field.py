"""One field of structs set: the others stay, a null struct becomes one."""

from __future__ import annotations

import pyarrow as pa

from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.expressions.set_field import field_of, replaced, with_field
from mica.expressions.tree import Call, Cast, Column, Literal
from mica.schema.ddl import parse_ddl
from mica.schema.types import INTEGER, STRING, VOID

SCHEMA = parse_ddl("s STRUCT<x: INT, t: STRUCT<a: INT>>")
STRUCTS = pa.array([{"x": 1, "t": {"a": 2}}, None, {"x": None, "t": None}], SCHEMA and pa.struct(
    [("x", pa.int32()), ("t", pa.struct([("a", pa.int32())]))]))  # fmt: skip
S = Column(("s",))


def test_a_null_struct_becomes_one_of_nulls() -> None:
    found = replaced(STRUCTS, "x", pa.array([7, 8, None], pa.int32()))
    assert found.to_pylist() == [{"x": 7, "t": {"a": 2}}, {"x": 8, "t": None}, {"x": None, "t": None}]
    assert replaced(STRUCTS[1:], "x", pa.array([1, 2], pa.int32())).to_pylist()[0] == {"x": 1, "t": None}
    assert found.type == STRUCTS.type


def test_bound_and_evaluated_the_type_stays() -> None:
    inner = with_field(Column(("s", "t")), "a", Literal(5, INTEGER))
    bound = bind_value(with_field(with_field(S, "t", inner), "x", Literal(None, VOID)), SCHEMA)
    assert bound.type == SCHEMA.field("s").type
    columns = {("s",): STRUCTS, ("s", "t"): pa.compute.struct_field(STRUCTS, "t")}
    found = evaluate(bound, [columns[leaf.column] for leaf in bound.leaves])
    assert found.to_pylist() == [{"x": None, "t": {"a": 5}}] * 3


def test_fields_are_found_in_what_was_set() -> None:
    expr = with_field(with_field(S, "x", Literal(1, INTEGER)), "t", with_field(Column(("s", "t")), "a", S))
    assert field_of(expr, ["x"]) == Literal(1, INTEGER)
    assert field_of(expr, ["t", "a"]) == S
    assert field_of(expr, ["t", "b"]) == Column(("s", "t", "b"))
    assert field_of(expr, ["u", "b"]) == Column(("s", "u", "b"))
    assert field_of(expr, ["x", "y"]) == Call(".", (Literal(1, INTEGER), Literal("y", STRING)))
    assert field_of(Cast(Literal(None, VOID), SCHEMA.field("s").type), ["x"]) == Literal(None, VOID)
    assert field_of(Literal(1, INTEGER), []) == Literal(1, INTEGER)
