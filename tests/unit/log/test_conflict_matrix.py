"""The conflict matrix, every cell as two real commits: one of two operations on the same version wins, and the other
one commits after it or is refused. What commits leaves the rows of the two operations one after the other.

`log/conflicts.py` has the rules; here are the operations.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import mica
from mica.errors import ConflictError
from mica.maintain.optimize import optimize

KEYS = [{"id": 1}, {"id": 100}]

OPERATIONS: dict[str, Callable[[mica.Table], object]] = {
    "append": lambda t: t.append([{"id": 50, "p": 0, "n": 1}]),
    "delete": lambda t: t.delete("id = 1"),
    "update": lambda t: t.update({"n": "n + 10"}, "id = 1"),
    "merge": lambda t: t.merge(KEYS, "target.id = source.id").when_matched_update({"n": "target.n + 100"})
    .when_not_matched_insert({"id": "id", "p": "0"}).execute(),
    "optimize": lambda t: optimize(t.snapshot, None, None, None, None),
    "overwrite": lambda t: t.overwrite([{"id": 7, "p": 0, "n": 7}]),
    "metadata": lambda t: t.set_properties({"mine": "1"}),
}  # fmt: skip

#: The winner by row, the loser by column, in the order of `OPERATIONS`: `.` commits too, `a` is CONCURRENT_APPEND, `d`
#: is CONCURRENT_DELETE, `m` is METADATA_CHANGED.
MATRIX = {
    "append":    ". a a a . a .",
    "delete":    ". a a a d a .",
    "update":    ". a a a d a .",
    "merge":     ". a a a d a .",
    "optimize":  ". d d d d d .",
    "overwrite": ". a a a d a .",
    "metadata":  "m m m m m m m",
}  # fmt: skip
CODES = {"a": "CONCURRENT_APPEND", "d": "CONCURRENT_DELETE", "m": "METADATA_CHANGED"}
CELLS = [
    (winner, loser, sign)
    for winner, signs in MATRIX.items()
    for loser, sign in zip(OPERATIONS, signs.split(), strict=True)
]


def table_of(path: Path, properties: dict[str, str]) -> mica.Table:
    table = mica.Table.create(path, "id INT, p INT, n INT", ["p"], properties=properties)
    for part in range(2):
        table.append([{"id": i, "p": 0, "n": i} for i in range(part * 5, part * 5 + 5)])
    return table


def rows(table: mica.Table) -> list[tuple[int, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


@pytest.mark.parametrize(("winner", "loser", "sign"), CELLS)
def test_cell(tmp_path: Path, rng: random.Random, winner: str, loser: str, sign: str) -> None:
    properties = {"delta.enableDeletionVectors": rng.choice(["false", "true"])}
    table_of(tmp_path / "t", properties)
    first, second = (mica.Table.open(tmp_path / "t") for _ in range(2))
    OPERATIONS[winner](first)
    won, files = rows(first), set(tmp_path.rglob("t/**/*.parquet"))
    if sign == ".":
        OPERATIONS[loser](second)
        serial = table_of(tmp_path / "serial", properties)
        OPERATIONS[winner](serial)
        OPERATIONS[loser](mica.Table.open(tmp_path / "serial"))
        assert rows(mica.Table.open(tmp_path / "t")) == rows(mica.Table.open(tmp_path / "serial"))
        return
    with pytest.raises(ConflictError) as raised:
        OPERATIONS[loser](second)
    assert raised.value.code == CODES[sign]
    now = mica.Table.open(tmp_path / "t")
    assert (now.version, rows(now)) == (first.refresh().version, won)
    assert set(tmp_path.rglob("t/**/*.parquet")) == files
    assert mica.check(now).ok


def test_partitions_that_differ_do_not_conflict(tmp_path: Path) -> None:
    table = table_of(tmp_path, {})
    table.append([{"id": i, "p": 1, "n": i} for i in range(20, 25)])
    for winner in ("p = 0 AND id = 1", "p = 0 AND id = 2"):
        stale = mica.Table.open(tmp_path)
        mica.Table.open(tmp_path).delete(winner)
        stale.merge([{"p": 1, "id": 21}], "target.p = source.p AND target.id = source.id").when_matched_update(
            {"n": "target.n + 1"}).execute()  # fmt: skip
    assert [row for row in rows(mica.Table.open(tmp_path)) if row[0] == 21] == [(21, 1, 23)]
