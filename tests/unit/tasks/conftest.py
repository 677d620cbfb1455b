"""A bucket in memory for tests of whole jobs."""

from __future__ import annotations

from typing import Any

import pytest
from obstore.store import MemoryStore

from mica.storage import Storage
from mica.storage.remote import RemoteStorage


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """What is at s3://bucket in this test."""
    memory = MemoryStore()
    real = Storage.open

    def opened(location: Any, options: Any = None) -> Storage:
        text = str(location)
        if text.startswith("s3://bucket"):
            return RemoteStorage("s3://bucket", text.removeprefix("s3://bucket").strip("/"), None, memory)
        return real(location, options)

    monkeypatch.setattr(Storage, "open", staticmethod(opened))
    return memory
