"""What a failure of an object store means: a code, words and a hint, whether the store refused, and whether its answer
could not be read.

The rule: obstore repeats what a store failed to do or to answer (5xx, 429, a connection that broke) before it reports
it, so what is left is final for the caller, except two facts that it needs. Who was *refused* knows that nothing was
done; after every other failure of a write it may have been. An answer that was *unreadable*, cut off or malformed, is
what obstore does not ask for again in a listing: a request that changes nothing may be repeated then.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from mica import late
from mica.errors import StorageError

T = TypeVar("T")

CODES: Mapping[str, tuple[str, str | None]] = {
    "AlreadyExistsError": ("FILE_EXISTS", None),
    "PreconditionError": ("FILE_EXISTS", None),
    "FileNotFoundError": ("NOT_FOUND", "Check the path."),
    "NotFoundError": ("NOT_FOUND", "Check the path."),
    "PermissionDeniedError": ("PERMISSION_DENIED", "Check the credentials and their rights."),
    "UnauthenticatedError": ("PERMISSION_DENIED", "Give credentials in storage_options or the environment."),
    "UnknownConfigurationKeyError": ("UNKNOWN_STORAGE_OPTION", "Check storage_options."),
    "InvalidPathError": (
        "INVALID_NAME",
        "mica reads no names with an empty part (a//b), . or .. in object stores: rename the object.",
    ),
    "NotSupportedError": ("NOT_SUPPORTED", "This store does not support it."),
    "NotImplementedError": ("NOT_SUPPORTED", "The storage_options deny it, or the store does not support it."),
    # Of our own, see `_GENERIC`.
    "Unspecified": ("IO", "Check storage_options."),
    "WithoutTls": ("IO", "An endpoint without TLS needs storage_options={'allow_http': 'true'}."),
    "Unanswered": ("IO", "The store does not answer: check the endpoint and the network."),
    "Undecided": ("IO", "Try again."),
    "NoBucket": ("NOT_FOUND", "Make the bucket, or check its name."),
    "Elsewhere": ("IO", "Check storage_options: the bucket is in another region, or at another endpoint."),
    "Unreadable": ("IO", "The answer was cut off, or an object store gives no such answer: check the endpoint."),
}

#: Failures that obstore calls generic only, by their text. Without credentials it asks the machine for its role.
_GENERIC: Mapping[str, str] = {
    "parse path": "InvalidPathError",
    "token request": "UnauthenticatedError",
    "169.254.169.254": "UnauthenticatedError",
    "must be specified": "Unspecified",
    "redirect without LOCATION": "Elsewhere",
    "HTTP error: builder error": "WithoutTls",
    "HTTP error: error sending request": "Unanswered",
    "response body": "Unreadable",
    "Got invalid ": "Unreadable",
    # Of a listing, which is what opens a table.
    "status code: 401": "UnauthenticatedError",
    "status code: 403": "PermissionDeniedError",
}

#: Failures by the store's own word for them, which says more than obstore's: S3 answers a conditional put with a
#: conflict while another of the same name is under way, and nobody has won yet, but obstore says that the object is
#: there.
_OWN: Mapping[str, str] = {
    "ConditionalRequestConflict": "Undecided",
    "NoSuchBucket": "NoBucket",
    "ContainerNotFound": "NoBucket",
    "AccessDenied": "PermissionDeniedError",
    "ExpiredToken": "UnauthenticatedError",
    "InvalidToken": "UnauthenticatedError",
    "AuthorizationHeaderMalformed": "Elsewhere",
    "NotImplemented": "NotImplementedError",
}

#: A store's word and sentence in an answer as XML, in one of several deletions, and in one as JSON.
_CODE = late.pattern(r"<Code>(\w+)</Code>|\(code: (\w+)\)")
_SENTENCE = late.pattern(r"<Message>([^<\n]+)|\"message\": *\"([^\"\n]+)")

#: What a message says of the file, by the failure or its code; otherwise the store's own words.
_SAYS = {
    "NOT_FOUND": " does not exist",
    "FILE_EXISTS": " already exists",
    "NoBucket": " is in a bucket that does not exist",
    "Undecided": " is being written by another request",
}

#: The answers of HTTP that refuse a request, in obstore's words.
_REFUSED = late.pattern(r"status code: 4\d\d\b")
#: Those among them that another try may change, or that came while the first one may be under way: of time, of a
#: conflict, of too many requests; S3 says 400 for a request that took too long to arrive.
_LATER = late.pattern(r"status code: (408|409|429)\b|<Code>RequestTimeout</Code>")

#: obstore made the request again: an earlier one may have been done.
_AGAIN = late.pattern(r"after \d+ retries\b")

_REPEATS = 5
_PAUSE = 0.05  # seconds before the first repeat, doubled each time


class Meaning(NamedTuple):
    """What is known of a failure; `says` continues the name of the file."""

    code: str
    says: str
    hint: str | None
    refused: bool
    unreadable: bool


def meaning(error: BaseException) -> Meaning:
    """What an exception of obstore means."""
    # The rest of an obstore message is a debug dump, which may hold headers and signed addresses.
    text = str(error).strip().partition("\n\nDebug source:")[0]
    own = _first(_CODE, text)
    # By name: obstore raises Python's own FileNotFoundError for its NotFoundError.
    name = _OWN.get(own, type(error).__name__)
    if name not in CODES:
        name = next((kind for said, kind in _GENERIC.items() if said in text), name)
    code, hint = CODES.get(name, ("IO", None))
    refused = code != "IO" or name in ("Unspecified", "WithoutTls", "Elsewhere")
    refused = refused or (_REFUSED.search(text) is not None and _LATER.search(text) is None)
    refused = refused and _AGAIN.search(text) is None
    says = _SAYS.get(name) or _SAYS.get(code) or f": {_words(text, own)}"
    return Meaning(code, says, hint, refused, name == "Unreadable")


def _words(text: str, own: str) -> str:
    """obstore's words and those of the store, without the form of its answer and what else is in it."""
    line, sentence = text.partition("\n")[0], _first(_SENTENCE, text)
    if not sentence:
        return line
    return ": ".join(filter(None, (re.split(r"[<{]", line, maxsplit=1)[0].rstrip(" :"), own, sentence)))


def _first(pattern: re.Pattern[str], text: str) -> str:
    """The group of the pattern's first match that has something, or nothing."""
    found = pattern.search(text)
    return "" if found is None else next(filter(None, found.groups()), "")


def repeated(ask: Callable[[], T]) -> T:
    """What a request gives that changes nothing: it is made again while its answer is unreadable."""
    for repeat in range(_REPEATS - 1):
        try:
            return ask()
        except StorageError as error:
            if not error.unreadable:
                raise
        time.sleep(_PAUSE * 2**repeat)
    return ask()
