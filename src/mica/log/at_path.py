"""Which version a path asks for: `events@v3`, or `events@20260131120000000` for a time.

The rule (as in delta-spark): an ending of this form means a version only where no table is at the path as it is given.
A time is written `yyyyMMddHHmmssSSS` and has no zone: who asks knows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from mica.errors import UserError
from mica.log.snapshot import exists
from mica.storage import Storage

_ENDING = re.compile(r"(?s)(?P<path>.+)@(?:[vV](?P<version>\d+)|(?P<time>\d{17}))")


def at_path(
    path: str | os.PathLike[str], options: Mapping[str, str] | None = None
) -> tuple[Storage, int | datetime | None]:
    """The place of a table, and the version or the time without a zone that its path asks for; None for the newest.

    Errors: those of `Storage.open`; INVALID_ARGUMENT for digits that are no time.
    """
    storage = Storage.open(path, options)
    found = _ENDING.fullmatch(os.fspath(path).rstrip("/"))
    if found is None or exists(storage):
        return storage, None
    storage = Storage.open(found["path"], options)
    return storage, _moment(found["time"]) if found["version"] is None else int(found["version"])


def _moment(digits: str) -> datetime:
    try:
        return datetime.strptime(digits[:14], "%Y%m%d%H%M%S") + timedelta(milliseconds=int(digits[14:]))  # noqa: DTZ007
    except ValueError:
        raise UserError.bad_value("the time of the path", digits, "yyyyMMddHHmmssSSS, as 20260131120000000") from None
