"""Errors name what was asked, what was found and what to do, and survive the trip from a worker."""

from __future__ import annotations

import pickle

import pytest

from mica.errors import (
    ConflictError,
    CorruptDataError,
    MicaError,
    StorageError,
    UnsupportedTableError,
    UserError,
)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (UserError, "INVALID_ARGUMENT"), (UnsupportedTableError, "DELETED_ROWS"), (CorruptDataError, "CORRUPT_LOG"),
        (ConflictError, "CONCURRENT_DELETE"), (StorageError, "IO"),
    ],
)  # fmt: skip
def test_every_error_survives_pickling(kind: type[MicaError], code: str) -> None:
    error = kind(code, "what was found", hint="What to do.", path="a/b", row=3)
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert (back.code, back.message, back.hint, dict(back.context)) == (
        code,
        "what was found",
        "What to do.",
        {"path": "a/b", "row": 3},
    )
    assert str(back) == str(error)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at s3://me:pa/ss@host/t?a=b", "at s3://***@host/t?a=b"),
        ("az:/me:pass@host", "az:/***@host"),
        ("https://u:p@s:s@host/x@y", "https://***@host/x@y"),
        ("https://host/t?X-Amz-Signature=abc&b=c", "https://host/t?X-Amz-Signature=***&b=c"),
        ("s3://host/a:b c@d, file:/e@f", "s3://host/a:b c@d, file:/e@f"),
        ("time: 10:30, ?sig=1", "time: 10:30, ?sig=1"),
    ],
)
def test_credentials_are_left_out(text: str, shown: str) -> None:
    assert CorruptDataError("INTERNAL", text).message == shown


@pytest.mark.timeout(10)  # a step for each character; one for each pair of them would take minutes
@pytest.mark.parametrize("part", ["'http://host/1',", ":/", ":/?sig=", "https://a:b@c?", "?sig"])
def test_credentials_are_looked_for_once_in_a_long_text(part: str) -> None:
    CorruptDataError("INTERNAL", "x:/" + part * 50_000)


def test_a_users_mistake_is_a_value_error() -> None:
    assert issubclass(UserError, ValueError)
    assert not issubclass(CorruptDataError, ValueError)


def test_the_text_has_the_code_the_place_once_and_the_hint_last() -> None:
    error = StorageError("NOT_FOUND", "a/b does not exist", hint="Check the path.", path="a/b", version=7)
    assert str(error) == "[NOT_FOUND] a/b does not exist (version: 7)\nCheck the path."


def test_what_spark_calls_an_error_is_in_no_text() -> None:
    error = UserError("INVALID_CAST", "a cannot be cast", row=3, condition="CAST_OVERFLOW")
    assert (str(error), error.context["condition"]) == ("[INVALID_CAST] a cannot be cast (row: 3)", "CAST_OVERFLOW")


def test_a_number_is_shown_unless_the_message_says_it() -> None:
    for message in ("a of /tmp/run-21/f is bad", "a of 214 files is bad", "a21 is bad"):
        assert str(CorruptDataError("INTERNAL", message, rule=21)).endswith("(rule: 21)")
    assert str(CorruptDataError("INTERNAL", "row 21 is bad", row=21)) == "[INTERNAL] row 21 is bad"


def test_unknown_context_is_left_out() -> None:
    assert dict(CorruptDataError("INTERNAL", "m", path=None, row=0).context) == {"row": 0}


def test_an_unknown_name_lists_the_known_ones() -> None:
    error = UserError.unknown_column("x", ["a", "b"])
    assert (error.code, error.hint) == ("UNKNOWN_COLUMN", "There are: a, b.")
    assert "…" in str(UserError.unknown_column("x", [str(i) for i in range(30)]))
