"""Rows whose new values have no room in one array are made in halves."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.errors import UserError
from mica.expressions import room
from mica.tasks.halves import in_halves

TEXT = "x" * 100


@pytest.mark.parametrize("most", [1, 3, 10])
def test_rows_come_in_order_as_many_at_once_as_have_room(most: int) -> None:
    def make(first: int, end: int) -> pa.RecordBatch:
        if end - first > most:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return pa.record_batch({"n": range(first, end)})

    made = list(in_halves(make, 10))
    assert [n for batch in made for n in batch["n"].to_pylist()] == list(range(10))
    assert max(batch.num_rows for batch in made) <= most
    assert (len(made) == 1) == (most == 10)


@pytest.mark.parametrize(
    ("error", "code"),
    [(pa.ArrowCapacityError("full"), "TOO_LARGE"), (UserError("INVALID_CAST", "x"), "INVALID_CAST")],
)
def test_errors_of_a_single_row_and_other_errors_are_told(error: Exception, code: str) -> None:
    def make(first: int, end: int) -> pa.RecordBatch:
        raise error

    with pytest.raises(UserError) as caught:
        list(in_halves(make, 4))
    assert caught.value.code == code


@pytest.mark.parametrize("feed", ["true", "false"])
def test_updates_and_merges_are_made_in_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feed: str) -> None:
    properties = {"delta.enableChangeDataFeed": feed}
    table = mica.Table.create(tmp_path / "t", "k INT, s STRING, n INT", properties=properties)
    table.append([{"k": k} for k in range(40)])
    monkeypatch.setattr(room, "MOST_BYTES", 1_000)
    table.update({"s": f"'{TEXT}'", "n": "k + 1"}, where="k < 20")
    source = [{"k": k} for k in range(10, 60)]
    merge = table.merge(source, "target.k = source.k").when_matched_update({"s": f"'{TEXT}!'", "n": "source.k * 2"})
    merge.when_not_matched_insert({"k": "source.k", "s": f"'{TEXT}'", "n": "source.k"}).execute()
    expected = [(k, TEXT, k + 1) for k in range(10)] + [(k, f"{TEXT}!", 2 * k) for k in range(10, 40)]
    expected += [(k, TEXT, k) for k in range(40, 60)]
    assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == expected
    if feed == "true":
        assert table.changes(2).to_arrow().num_rows == 20 * 2 + 30 * 2 + 20
