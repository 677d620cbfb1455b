"""Columns by the names that people give them."""

from __future__ import annotations

from mica.schema.named import by_name, spelled


def test_a_name_means_one_column() -> None:
    dotted, field, other = ("s.v",), ("s", "v"), ("a.B", "c")
    assert by_name([dotted, field, other]) == {"`s.v`": dotted, "s.v": field, "a.b.c": other, "`a.b`.c": other}
    assert by_name([dotted]) == {"s.v": dotted, "`s.v`": dotted}
    assert [spelled(column) for column in (dotted, field)] == ["`s.v`", "s.v"]
