"""Fields by name."""

from __future__ import annotations

import pickle

import pytest

from mica.schema.types import LONG, STRING, StructField, StructType


class Counted(str):
    """A name that counts how often it is lowered."""

    lowered = 0
    __slots__ = ()

    def lower(self) -> str:
        Counted.lowered += 1
        return str(self).lower()


@pytest.mark.parametrize("spelling", ["c{}", "C{}", "no {}"])
def test_each_field_of_a_wide_struct_is_found_without_a_look_at_all(spelling: str) -> None:
    wide = StructType(tuple(StructField(Counted(f"c{n}"), LONG) for n in range(300)))
    Counted.lowered = 0
    found = [wide.find(spelling.format(n)) for n in range(300)]
    assert Counted.lowered <= 2 * 300
    assert found == ([None] * 300 if spelling == "no {}" else list(wide.fields))


def test_the_exact_name_is_found_before_others_and_of_these_the_first() -> None:
    both = StructType((StructField("AB", LONG), StructField("ab", STRING)))
    assert [both.find(name) for name in ("AB", "ab", "Ab")] == [both.fields[0], both.fields[1], both.fields[0]]


def test_what_was_found_is_not_sent_to_tasks() -> None:
    struct = StructType((StructField("a", LONG),))
    before = pickle.dumps(struct)
    struct.find("a")
    assert pickle.dumps(struct) == before
    assert pickle.loads(before) == struct
