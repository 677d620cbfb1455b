"""Commits in shares: what is found is that of each commit, and so are errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mica.errors import CorruptDataError
from mica.log import shares
from mica.storage import Storage

ADD = json.dumps({"add": {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}})
INFO = '{"commitInfo":{}}'


def written(root: Path, *texts: str) -> Storage:
    for version, text in enumerate(texts):
        (root / f"{version}.json").write_bytes(text.encode())
    return Storage.open(str(root))


@pytest.mark.parametrize(
    "texts",
    [
        (f"{INFO}\n{ADD}\n", f"{ADD}\n{ADD}\n", f"{INFO}\n"),
        (f"{INFO}\n{ADD}", f"{ADD}\r\n{ADD}\r\n\r\n", INFO),
        (f"\n{INFO}\n\n{ADD}\n", f"{ADD}\n \n{ADD}", f"{INFO}\n\n\n"),
    ],
    ids=["plain", "ends of lines", "blank lines"],
)
@pytest.mark.parametrize("most", [2, 64])
def test_each_line_has_the_commit_that_it_is_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: tuple[str, ...], most: int
) -> None:
    monkeypatch.setattr(shares, "COMMITS", most)
    storage = written(tmp_path, *texts, "", " \n")
    found: list[str] = []
    for entries, actions, places in shares.parsed(storage, sorted(storage.list()), []):
        found += (entries[place].path for place in places[actions.add_rows])
    assert found == ["0.json", "1.json", "1.json"]


def test_many_bytes_are_a_share_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "BYTES", 2 * len(ADD))
    storage = written(tmp_path, ADD, ADD, ADD + "\n" + ADD + "\n" + ADD, INFO)
    found = [[entry.path for entry in entries] for entries, _, _ in shares.parsed(storage, sorted(storage.list()), [])]
    assert found == [["0.json", "1.json"], ["2.json"], ["3.json"]]


def test_an_error_names_the_commit(tmp_path: Path) -> None:
    storage = written(tmp_path, ADD, ADD, '{"add": {}}', ADD)
    with pytest.raises(CorruptDataError, match=r"2\.json holds an add or remove without a path") as raised:
        list(shares.parsed(storage, sorted(storage.list()), []))
    assert raised.value.code == "CORRUPT_LOG"
