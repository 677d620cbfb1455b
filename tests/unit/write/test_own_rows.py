"""What a write takes of its own table is read by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mica
from mica.errors import ConflictError
from mica.log.transaction import Transaction


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has another write commit right before the next one does."""
    commit = Transaction.commit

    def before(other: Callable[[], object]) -> None:
        def first(self: Transaction, **given: object) -> object:
            monkeypatch.setattr(Transaction, "commit", commit)
            other()
            return commit(self, **given)

        monkeypatch.setattr(Transaction, "commit", first)

    return before


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    mica.Table.create(tmp_path / "t", "id INT, p STRING", ["p"]).append([{"id": 1, "p": "a"}, {"id": 2, "p": "b"}])
    return tmp_path / "t"


def _other(table: mica.Table, of: str, to: str) -> mica.Scan:
    return table.scan(where=f"p = '{of}'", columns={"id": "id + 10", "p": f"'{to}'"})


_WRITES: dict[str, Callable[[mica.Table], object]] = {
    "append of all": lambda t: t.append(t.scan()),
    "append of the table": lambda t: t.append(t),
    "overwrite": lambda t: t.overwrite(_other(t, "b", "a"), where="p = 'a'"),
    "dynamic": lambda t: t.dynamic_partition_overwrite(_other(t, "b", "a")),
    "merge": lambda t: (
        t.merge(_other(t, "b", "a"), "target.p = 'a'").when_matched_update({"id": "source.id"}).execute()
    ),
}


@pytest.mark.parametrize("write", _WRITES.values(), ids=_WRITES)
def test_rows_that_another_writer_takes_away_are_not_written(
    path: Path, between: Callable[[Callable[[], object]], None], write: Callable[[mica.Table], object]
) -> None:
    table = mica.Table.open(path)
    between(lambda: mica.Table.open(path).delete("p = 'b'"))
    with pytest.raises(ConflictError):
        write(table)
    assert table.refresh().to_arrow()["id"].to_pylist() == [1]
    write(table)


@pytest.mark.parametrize(
    ("write", "ids"),
    [
        (lambda t: t.append(_other(t, "a", "a")), [1, 3, 11]),
        (lambda t: t.append(mica.Table.open(t.path, version=1).scan()), [1, 1, 2, 3]),
    ],
    ids=["another partition", "an older version"],
)
def test_other_rows_are_no_conflict(
    path: Path, between: Callable[[Callable[[], object]], None], write: Callable[[mica.Table], object], ids: list[int]
) -> None:
    table = mica.Table.open(path)
    table.append([{"id": 3, "p": "c"}])
    between(lambda: mica.Table.open(path).delete("p = 'b'"))
    write(table)
    assert sorted(table.to_arrow()["id"].to_pylist()) == ids


def test_a_write_of_its_own_rows_is_no_blind_append(path: Path) -> None:
    table = mica.Table.open(path)
    table.append([{"id": 3, "p": "c"}])
    table.append(table.scan())
    assert table.history(2)["is_blind_append"].to_pylist() == [False, True]
