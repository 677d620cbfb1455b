"""A bucket in memory for tests of whole jobs."""

from __future__ import annotations

from typing import Any

import pytest
from obstore.store import MemoryStore

from mica.storage import Storage
from mica.storage.remote import RemoteStorage


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """What is at s3://bucket, or s3a://bucket, in this test."""
    memory = MemoryStore()
    real = Storage.open

    def opened(location: Any, options: Any = None) -> Storage:
        scheme, _, place = str(location).partition("://")
        if scheme in ("s3", "s3a") and place.startswith("bucket"):
            return RemoteStorage(f"{scheme}://bucket", place.removeprefix("bucket").strip("/"), None, memory)
        return real(location, options)

    monkeypatch.setattr(Storage, "open", staticmethod(opened))
    return memory
