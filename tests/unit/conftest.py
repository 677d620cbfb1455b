"""A location of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from mica.storage import Storage
from mica.storage.remote import RemoteStorage


@pytest.fixture(params=["local", "remote"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return Storage.open(tmp_path / "t")
    return RemoteStorage("s3://bucket", "some/where", None, MemoryStore())
