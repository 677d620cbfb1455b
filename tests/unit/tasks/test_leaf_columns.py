"""Ids of rows in one file: by their places where the file holds none, whatever filter runs and rows are deleted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import mica
from mica.tasks import file

ON = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
FILTERS = ["n % 3 = 1", "_metadata.row_id % 4 = 1", "_metadata.row_id % 4 = 1 AND n > 20", "p = 1", "p = 2",
           "_metadata.row_commit_version = 2", "n % 3 = 1 OR _metadata.row_id < 30 OR p = 2"]  # fmt: skip


@pytest.mark.parametrize("rewritten", [False, True])
def test_ids_are_those_of_the_rows_that_are_read(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, rewritten: bool
) -> None:
    monkeypatch.setattr(file, "BATCH_ROWS", rng.choice([3, 16, 1000]))
    table = mica.Table.create(tmp_path, "n INT, p INT", ["p"], ON)
    table.append([{"n": n, "p": 1} for n in range(100)])
    table.delete(f"n IN ({', '.join(map(str, rng.sample(range(100), 30)))})")
    if rewritten:
        table.optimize()
        table.append([{"n": n, "p": 2} for n in range(100, 120)])
        table.optimize(zorder_by=["n"])
        table.delete("n % 10 = 0")
    asked = {"n": "n", "id": "_metadata.row_id", "version": "_metadata.row_commit_version", "p": "p"}
    every = table.scan(columns=asked).to_arrow().to_pylist()
    # Rows were appended in this order; what is written again takes ids, too.
    assert all(row["id"] == row["n"] for row in every if row["p"] == 1)
    assert len({row["id"] - row["n"] for row in every if row["p"] == 2}) <= 1
    for where in FILTERS:
        names = {"_metadata.row_id": "id", "_metadata.row_commit_version": "version", " = ": " == "}
        text = where.replace(" OR ", " or ").replace(" AND ", " and ")
        for sql, python in names.items():
            text = text.replace(sql, python)
        expected = [row for row in every if eval(text, {}, row)]
        assert table.scan(where, columns=asked).to_arrow().to_pylist() == expected, where
        assert table.scan(where, columns=["_metadata.row_id"]).to_arrow()["row_id"].to_pylist() == [
            row["id"] for row in expected
        ]
        assert table.scan(where).count() == len(expected)
        assert table.scan(where, columns=asked, limit=5).to_arrow().to_pylist() == expected[:5]


def test_whether_a_variant_is_null_is_asked_of_one_leaf(tmp_path: Path, rng: random.Random) -> None:
    table = mica.Table.create(tmp_path, "n INT, v VARIANT")
    table.append([{"n": n, "v": {"a": rng.randbytes(50).hex(), "n": n} if n else None} for n in range(500)])
    asked = {"there": "v IS NOT NULL", "missing": "v IS NULL", "either": "v IS NULL OR v:n::bigint = 7"}
    found = {name: table.scan(where, ["n"]).to_arrow()["n"].to_pylist() for name, where in asked.items()}
    assert found == {"there": list(range(1, 500)), "missing": [0], "either": [0, 7]}
    fetched = [table.scan(where, ["n"]).explain(analyze=True).to_dict()["analyze"]["bytes"] for where in asked.values()]
    whole = table.scan(None, ["v"]).explain(analyze=True).to_dict()["analyze"]["bytes"]
    assert fetched[0] < whole / 4
    both = table.scan("v IS NOT NULL", ["v"]).to_arrow()["v"]
    assert both.to_pylist() == table.scan(None, ["v"]).to_arrow()["v"].to_pylist()[1:]
