"""A schema in which two columns are one is refused where it is read."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from mica.errors import CorruptDataError
from mica.log.column_mapping import id_twice, read_schema
from mica.properties import Mode

MAPPING = "delta.columnMapping."


def column(name: str, number: int | None = None, physical: str | None = None, kind: Any = "long") -> dict[str, Any]:
    keys = {f"{MAPPING}id": number, f"{MAPPING}physicalName": physical}
    metadata = {key: value for key, value in keys.items() if value is not None}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def text(*columns: dict[str, Any], depth: str = "top") -> str:
    """The schema of these columns, at the top or inside."""
    inner: Any = {"type": "struct", "fields": list(columns)}
    if depth == "array":
        inner = {"type": "array", "elementType": inner, "containsNull": True}
    if depth == "map":
        inner = {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True}
    if depth != "top":
        inner = {"type": "struct", "fields": [column("outer", 100, "p100", inner)]}
    return orjson.dumps(inner).decode()


@pytest.mark.parametrize("depth", ["top", "struct", "array", "map"])
@pytest.mark.parametrize(
    ("columns", "mode", "said"),
    [
        ((column("a", 1, "p1"), column("b", 1, "p2")), "id", "'a' and 'b' have one delta.columnMapping.id, 1"),
        ((column("a", 1, "p1"), column("b", 2, "p1")), "id", "have one delta.columnMapping.physicalName, 'p1'"),
        ((column("a", 1, "p1"), column("b", 2, "p1")), "name", "have one delta.columnMapping.physicalName, 'p1'"),
        ((column("a", 1),), "id", "'a' has no delta.columnMapping.physicalName"),
        ((column("a", 1),), "name", "'a' has no delta.columnMapping.physicalName"),
        ((column("a"), column("a")), "none", "the column 'a' twice"),
        ((column("a"), column("A")), "none", "'a' and 'A', which differ only in case"),
    ],
)
def test_two_columns_that_are_one(columns: tuple[dict[str, Any], ...], mode: Mode, said: str, depth: str) -> None:
    with pytest.raises(CorruptDataError, match=said) as caught:
        read_schema(text(*columns, depth=depth), mode)
    assert caught.value.code == "INVALID_SCHEMA_JSON"
    assert caught.value.hint
    assert caught.value.context["column"] in ("a", "b", "A")


def test_names_repeat_at_other_levels_and_keys_do_not_matter_without_mapping() -> None:
    # A table whose mapping was turned on later has its own names as physical ones, at each level again.
    inner = {"type": "struct", "fields": [column("a", 3, "a")]}
    again = text(column("a", 1, "a"), column("s", 2, "s", inner))
    assert read_schema(again, "name").names == ["a", "s"]
    assert read_schema(text(column("a", 1, "p"), column("b", 1, "p")), "none").names == ["a", "b"]


def test_a_column_that_is_never_stored_needs_no_place() -> None:
    assert read_schema(text(column("a", 1, "p1"), column("b", kind="void")), "name").names == ["a"]


def test_an_id_twice_does_not_matter_to_readers_by_name() -> None:
    twice = text(column("a", 1, "p1"), column("b", 1, "p2"))
    assert read_schema(twice, "name").names == ["a", "b"]
    assert id_twice(twice, "name") == ("a", "b")
    assert id_twice(twice, "none") is None
