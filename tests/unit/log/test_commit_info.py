"""What is read of a commit's commitInfo, wherever a writer put it."""

from __future__ import annotations

import orjson
import pytest

from mica.errors import CorruptDataError
from mica.log.commit_info import commit_info
from mica.storage import Storage

NAME = f"_delta_log/{1:020d}.json"
INFO = orjson.dumps({"commitInfo": {"operation": "WRITE", "inCommitTimestamp": 5}})
OTHER = orjson.dumps({"add": {"path": "f", "tags": {"said": '"commitInfo"'}}})


@pytest.mark.parametrize(
    "lines",
    [
        [INFO, OTHER],
        [OTHER, INFO],
        [OTHER, b'{"txn":{"appId":"commitInfo","version":1}}', INFO, b""],
        [orjson.dumps({"commitInfo": {"operation": "WRITE", "inCommitTimestamp": 5, "notes": "x" * 200_000}}), OTHER],
    ],
)
def test_it_is_found_in_any_line(storage: Storage, lines: list[bytes]) -> None:
    data = b"\n".join(lines)
    storage.put(NAME, data)
    found = commit_info(storage, NAME, len(data))
    assert (found["operation"], found["inCommitTimestamp"]) == ("WRITE", 5)


@pytest.mark.parametrize(
    "data", [b"", b"\n", OTHER, b'{"txn":{"appId":"commitInfo","version":1}}\n', b'{"commitInfo":5}']
)
def test_a_commit_may_have_none(storage: Storage, data: bytes) -> None:
    storage.put(NAME, data)
    assert commit_info(storage, NAME, len(data)) == {}


def test_a_line_that_cannot_be_read_is_named_with_its_file(storage: Storage) -> None:
    storage.put(NAME, b'{"commitInfo":')
    with pytest.raises(CorruptDataError) as caught:
        commit_info(storage, NAME, 14)
    assert caught.value.context["path"] == storage.path(NAME)
