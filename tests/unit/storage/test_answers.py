"""What the failures of a store mean: which answers say that nothing was done, and which are asked for again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mica.errors import StorageError
from mica.storage import Storage
from mica.storage.answers import failure
from tests.faulty_s3 import FaultyS3


@pytest.fixture
def store() -> Iterator[FaultyS3]:
    with FaultyS3() as made:
        yield made


@pytest.mark.parametrize("fault", ["half", "garbage"])
def test_a_listing_that_is_cut_off_or_malformed_is_asked_for_again(store: FaultyS3, fault: str) -> None:
    home = Storage.open("s3://b/t", store.options)
    for name in ("a", "b"):
        home.put(name, b"1")
    store.spoil(fault, "LIST", times=4)
    assert [entry.path for entry in home.list()] == ["a", "b"]
    store.spoil(fault, "LIST", times=5)
    with pytest.raises(StorageError, match="s3://b/t") as caught:
        list(home.list())
    assert (caught.value.code, caught.value.unreadable, caught.value.refused) == ("IO", True, False)
    assert "check the endpoint" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("faults", "refused"),
    [([400], True), ([403], True), ([404], True), ([405], True), ([409], True), (["lost", 403], False)],
)
def test_who_was_refused_knows_that_nothing_was_done(store: FaultyS3, faults: list[int | str], refused: bool) -> None:
    home = Storage.open("s3://b/t", store.options)
    for fault in faults:
        store.spoil(fault, "PUT")
    with pytest.raises(StorageError) as caught:
        home.put_if_absent("a", b"1")
    assert caught.value.refused is refused


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("Server returned non-2xx status code: 400 Bad Request: <Code>RequestTimeout</Code>", False),
        ("Server returned non-2xx status code: 409 Conflict: <Code>ConditionalRequestConflict</Code>", False),
        ("Server returned non-2xx status code: 400 Bad Request: <Code>InvalidRequest</Code>", True),
        ("HTTP error: builder error", True),
        ("HTTP error: error sending request", False),
        ("in 3s, after 2 retries, max_retries: 10 - status code: 405 Method Not Allowed", False),
    ],
)
def test_by_its_words(text: str, refused: bool) -> None:
    assert failure(OSError(text)).refused is refused
