"""The user's own text for the history (`userMetadata` of commitInfo).

The rule: every commit inside `user_metadata` has the text. It is a context, not an argument, because it comes from an
option or a setting of the session and says nothing about the operation that commits.

Source: PROTOCOL.md, "Commit Provenance Information", which leaves the fields to writers; the name is delta-spark's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TEXT: ContextVar[str | None] = ContextVar("user_metadata", default=None)


@contextmanager
def user_metadata(text: str | None) -> Iterator[None]:
    """Gives commits of the `with` block this text; None: no text."""
    token = _TEXT.set(text)
    try:
        yield
    finally:
        _TEXT.reset(token)


def given_user_metadata() -> dict[str, str]:
    """Returns the text as a part of commitInfo; empty if there is none."""
    text = _TEXT.get()
    return {} if text is None else {"userMetadata": text}
