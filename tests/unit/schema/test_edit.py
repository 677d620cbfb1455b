"""Paths into schemas: through structs, arrays and maps, in any case, and an error names what is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mica.errors import UserError
from mica.schema.ddl import parse_ddl, to_ddl
from mica.schema.edit import edited, field_at, fields_of, inside, map_fields, replaced
from mica.schema.types import STRING, StructType

SCHEMA = parse_ddl("a INT, s STRUCT<x: INT, l: ARRAY<STRUCT<y: INT>>, m: MAP<STRUCT<k: INT>, STRUCT<v: INT>>>, A2 INT")


@pytest.mark.parametrize("path", ["a", "A", "s.x", "S.X", "s.l.element.y", "s.l.ELEMENT.Y", "s.m.key.k", "s.m.value.v"])
def test_a_field_is_found_and_replaced(path: str) -> None:
    names = path.split(".")
    assert field_at(SCHEMA, names).name.lower() == names[-1].lower()
    changed = replaced(SCHEMA, names, lambda f: replace(f, type=STRING))
    assert field_at(changed, names).type == STRING
    assert sum(f.type == STRING for f in fields_of(changed)) == 1


@pytest.mark.parametrize("path", ["b", "s.z", "s.l.y", "s.l.element.z", "a.b", "s.m.element.k", "s.l.element"])
def test_a_missing_one_is_named(path: str) -> None:
    with pytest.raises(UserError) as caught:
        field_at(SCHEMA, path.split("."))
    assert caught.value.code == "UNKNOWN_COLUMN"


def test_neighbours_are_edited_together() -> None:
    found = edited(SCHEMA, ["s", "x"], lambda fields, i: [*fields[i + 1 :], fields[i]])
    assert found.field("s").type.names == ["l", "m", "x"]  # type: ignore[attr-defined]


def test_types_are_changed_in_place() -> None:
    found = inside(SCHEMA, ["s", "l", "element"], lambda t: StructType((*t.fields, SCHEMA.field("a"))))  # type: ignore[attr-defined]
    assert isinstance(found, StructType)
    assert "ARRAY<STRUCT<y: INT, a: INT>>" in to_ddl(found)
    assert inside(SCHEMA, [], lambda t: t) is SCHEMA


def test_every_field_is_mapped() -> None:
    found = map_fields(SCHEMA, lambda f: replace(f, name=f.name.upper()))
    assert sorted(f.name for f in fields_of(found)) == sorted(f.name.upper() for f in fields_of(SCHEMA))
