"""What the failures of a store mean: which answers say that nothing was done, and which are asked for again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import mica
from mica.errors import StorageError
from mica.storage import Storage
from mica.storage.answers import meaning
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
    assert meaning(OSError(text)).refused is refused


def _s3(status: str, code: str, sentence: str) -> str:
    """What obstore says of S3's answer, whose second line has the reason."""
    return (
        f"Generic S3 error: Error performing GET http://h/b in 3ms - Server returned non-2xx status code: {status}: "
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{sentence}</Message>'
        "<StringToSign>hush</StringToSign></Error>\n\nDebug source:\nGeneric { <Code>Other</Code> }"
    )


@pytest.mark.parametrize(
    ("text", "code", "says", "hint"),
    [
        (_s3("403 Forbidden", "SignatureDoesNotMatch", "It does not match."), "PERMISSION_DENIED",
         "403 Forbidden: SignatureDoesNotMatch: It does not match.", "credentials"),
        (_s3("400 Bad Request", "ExpiredToken", "It has expired."), "PERMISSION_DENIED", "ExpiredToken: It", "Give"),
        (_s3("400 Bad Request", "AuthorizationHeaderMalformed", "expecting 'eu-west-1'"), "IO", "expecting 'eu-w",
         "another region"),
        ("Generic S3 error: … - Received redirect without LOCATION, this …", "IO", "redirect", "another region"),
        (_s3("404 Not Found", "NoSuchBucket", "No."), "NOT_FOUND", " is in a bucket that does not exist", "bucket"),
        (_s3("400 Bad Request", "InvalidRequest", "Odd."), "IO", "400 Bad Request: InvalidRequest: Odd.", None),
        ('G: status code: 400 Bad Request: {\n "error": {\n "message": "Odd."', "IO", ": 400 Bad Request: Odd.", None),
        (_s3("501 Not Implemented", "NotImplemented", "No."), "NOT_SUPPORTED", "NotImplemented: No.", "does not"),
        ("DeleteObjects request failed for key a: no (code: AccessDenied)", "PERMISSION_DENIED", "key a: no", "rights"),
        ("something else\nwith more", "IO", ": something else", None),
    ],
)  # fmt: skip
def test_a_failure_has_the_reason_that_the_store_gives(text: str, code: str, says: str, hint: str | None) -> None:
    """Of S3's answers nothing but the head of its XML was told."""
    found = meaning(OSError(text))
    assert (found.code, says in found.says) == (code, True), found
    assert (found.hint is None) == (hint is None)
    assert hint is None or hint in str(found.hint)
    assert "hush" not in found.says
    assert "<" not in found.says
    assert "\n" not in found.says


def test_a_bucket_that_does_not_exist_is_told_as_that(store: FaultyS3) -> None:
    store.bucket = "another"
    for ask in (
        lambda: mica.Table.open("s3://b/t", storage_options=store.options),
        lambda: mica.Table.create("s3://b/t", "n INT", storage_options=store.options),
        lambda: Storage.open("s3://b/t", store.options).put("a", b"1"),
    ):
        with pytest.raises(StorageError, match="is in a bucket that does not exist") as caught:
            ask()
        assert caught.value.code == "NOT_FOUND"
