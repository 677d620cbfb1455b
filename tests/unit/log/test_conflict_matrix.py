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
from mica.log.snapshot import Snapshot
from mica.log.transaction import Transaction
from mica.maintain.optimize import optimize

KEYS = [{"id": 1}, {"id": 100}]

OPERATIONS: dict[str, Callable[[mica.Table], object]] = {
    "append": lambda t: t.append([{"id": 1, "p": 0, "n": 1}]),
    "append other": lambda t: t.append([{"id": 50, "p": 0, "n": 1}]),
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
    "append":       ". . a a a . a .",
    "append other": ". . . . . . a .",
    "delete":       ". . a a a d a .",
    "update":       ". . a a a d a .",
    "merge":        ". . a a a d a .",
    "optimize":     ". . d d d d d .",
    "overwrite":    ". . d d d d a .",
    "metadata":     "m m m m m m m m",
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


@pytest.mark.parametrize("known", [True, False])
def test_files_whose_bounds_differ_do_not_conflict(tmp_path: Path, known: bool) -> None:
    """Those that were read, and those that came; without bounds they may hold anything."""
    table = mica.Table.create(
        tmp_path, "id INT, n INT", properties={} if known else {"delta.dataSkippingNumIndexedCols": "0"}
    )
    for part in range(3):
        table.append([{"id": 10 * part + i, "n": 0} for i in range(10)])
    changes: list[Callable[[mica.Table], object]] = [
        lambda t: t.delete("id = 3"),
        lambda t: t.update({"n": "n + 1"}, "id BETWEEN 14 AND 16"),
        lambda t: t.merge([{"id": 25}, {"id": 99}], "target.id = source.id").when_matched_update({"n": "7"})
        .when_not_matched_insert({"id": "id"}).execute(),
        lambda t: t.overwrite([{"id": 22, "n": -1}], "id = 22"),
    ]  # fmt: skip
    stale = [mica.Table.open(tmp_path) for _ in changes]
    done = []
    for change, own in zip(changes, stale, strict=True):
        try:
            change(own)
        except ConflictError as error:
            done.append(error.code)
    # The merge and the overwrite read the same file.
    assert done == ["CONCURRENT_APPEND"] * (1 if known else 3)
    if known:
        found = {row["id"]: row["n"] for row in mica.Table.open(tmp_path).to_arrow().to_pylist()}
        assert (3 in found, found[15], found[25], found[99], found[22]) == (False, 1, 7, None, 0)


def test_new_rows_that_come_from_the_table_were_read(tmp_path: Path) -> None:
    """What they depend on is in other files than the change reads."""
    table = mica.Table.create(tmp_path, "id INT, n INT")
    for first in (1, 101):
        table.append([{"id": first + i, "n": 10 * (i + 1)} for i in range(2)])
    low = table.scan("id < 100", {"id": "id + 100", "n": "n"})
    changes: list[Callable[[mica.Table], object]] = [
        lambda t: t.merge(low, "target.id = source.id").when_matched_update({"n": "source.n"}).execute(),
        lambda t: t.overwrite(low, "id >= 100"),
    ]
    for change in changes:
        stale = mica.Table.open(tmp_path)
        mica.Table.open(tmp_path).update({"n": "n + 1"}, "id < 100")
        with pytest.raises(ConflictError):
            change(stale)


def test_a_row_that_moves_into_what_was_read_is_a_conflict(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, n INT")
    for part in range(2):
        table.append([{"id": 10 * part + i, "n": 0} for i in range(10)])
    stale = mica.Table.open(tmp_path)
    table.update({"id": "3"}, "id = 15")
    with pytest.raises(ConflictError) as raised:
        stale.delete("id = 3")
    assert raised.value.code == "CONCURRENT_APPEND"
    # An optimize in between puts it into another file, which changes nothing.
    optimize(table.refresh().snapshot, None, None, None, None)
    with pytest.raises(ConflictError):
        stale.delete("id = 3")


@pytest.mark.parametrize("late", [False, True])
def test_a_change_has_a_place_among_those_that_read_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Done before the append that the copy read, the DELETE would have left nothing else to copy."""
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.isolationLevel": "WriteSerializable"})
    table.append([{"id": 1}])
    stale = mica.Table.open(tmp_path)
    table.append([{"id": 2}])

    def copy() -> None:
        now = mica.Table.open(tmp_path)
        now.append(now.scan(None, {"id": "id + 1000"}))

    rebase = Transaction._rebase

    def then_copied(transaction: Transaction, base: Snapshot | None) -> Snapshot:
        monkeypatch.setattr(Transaction, "_rebase", rebase)
        found = rebase(transaction, base)
        copy()
        return found

    if late:
        monkeypatch.setattr(Transaction, "_rebase", then_copied)
    else:
        copy()
    with pytest.raises(ConflictError) as raised:
        stale.delete("id < 10")
    assert raised.value.code == "CONCURRENT_APPEND"
    assert [row[0] for row in rows(mica.Table.open(tmp_path))] == [1, 2, 1001, 1002]
