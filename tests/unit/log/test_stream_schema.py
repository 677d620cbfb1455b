"""A stream goes on over a commit that changes the table's metadata where its rows can be read, and ends elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mica
from mica.errors import UserError
from mica.log.actions import Metadata
from mica.log.snapshot import Snapshot
from mica.log.stream_schema import check_goes_on

MAPPED = {"delta.columnMapping.mode": "name"}
WIDENED = {"delta.enableTypeWidening": "true"}
Change = Callable[[mica.Table], object]


def _before_and_after(path: Path, ddl: str, properties: dict[str, str], *changes: Change) -> tuple[Snapshot, Snapshot]:
    table = mica.Table.create(path, ddl, properties=properties)
    before = table.snapshot
    for change in changes:
        change(table)
    return before, table.refresh().snapshot


def _partitioned(table: mica.Table) -> None:
    mica.Table.create(table.path, "a INT, b INT", ["b"], mode="overwrite")


def _goes_on(end: Snapshot, version: int, metadata: Metadata) -> bool:
    try:
        check_goes_on(end, version, metadata)
    except UserError as error:
        return error.code != "STREAM_CHANGED"
    return True


# A change; whether a stream that starts after it reads what was there before, and one that runs goes on after it.
@pytest.mark.parametrize(
    ("ddl", "properties", "changes", "earlier", "later"),
    [
        ("a INT", {}, [lambda t: t.alter_column("a", comment="kilos")], True, True),
        ("a INT", {}, [lambda t: t.set_properties({"owner": "me"})], True, True),
        ("a INT", {}, [lambda t: t.set_properties(MAPPED)], True, True),
        ("i BIGINT GENERATED ALWAYS AS IDENTITY, a INT", {}, [lambda t: t.append([{"a": 1}])], True, True),
        ("a INT", {}, [lambda t: t.add_columns("b INT")], True, False),
        ("s STRUCT<a: INT>", {}, [lambda t: t.add_columns("b INT", into="s")], True, False),
        ("l ARRAY<STRUCT<a: INT>>", {}, [lambda t: t.add_columns("b INT", into="l.element")], True, False),
        ("a INT NOT NULL", {}, [lambda t: t.alter_column("a", nullable=True)], True, False),
        ("a INT", WIDENED, [lambda t: t.alter_column("a", type="BIGINT")], True, False),
        ("m MAP<STRING, INT>", WIDENED, [lambda t: t.alter_column("m.value", type="BIGINT")], True, False),
        ("a STRING", {}, [lambda t: t.set_collation("a", "UTF8_LCASE")], True, False),
        ("a INT, b INT", MAPPED, [lambda t: t.rename_column("b", "c")], True, False),
        ("a INT, b INT", MAPPED, [lambda t: t.drop_columns(["b"])], True, False),
        ("a INT, b INT", MAPPED, [lambda t: t.drop_columns(["b"]), lambda t: t.add_columns("b INT")], False, False),
        ("a INT", MAPPED, [lambda t: t.append([{"a": 1}]), lambda t: t.drop_feature("columnMapping")], False, False),
        ("a INT", {}, [lambda t: mica.Table.create(t.path, "a STRING", mode="overwrite")], False, False),
        ("a BIGINT", {}, [lambda t: mica.Table.create(t.path, "a INT", mode="overwrite")], False, False),
        ("a INT, b INT", {}, [_partitioned], False, False),
    ],
)  # fmt: skip
def test_columns_that_fit(
    tmp_path: Path, ddl: str, properties: dict[str, str], changes: list[Change], earlier: bool, later: bool
) -> None:
    before, after = _before_and_after(tmp_path, ddl, properties, *changes)
    assert _goes_on(after, before.version, before.metadata) is earlier
    assert _goes_on(before, after.version, after.metadata) is later


def test_the_error_says_how_to_go_on(tmp_path: Path) -> None:
    before, after = _before_and_after(
        tmp_path, "a INT", {}, lambda t: mica.Table.create(t.path, "a STRING", mode="overwrite")
    )
    with pytest.raises(UserError, match="other columns than version 1") as found:
        check_goes_on(after, 0, before.metadata)
    assert "checkpointLocation of its own" in str(found.value)
    with pytest.raises(UserError, match="changed the table's schema") as found:
        check_goes_on(before, 1, after.metadata)
    assert "start that stream" in str(found.value)
