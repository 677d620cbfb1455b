"""The only import of the native kernel, and the translation of its errors.

The rule: nothing else imports `mica._native`, and every kernel error becomes a mica error: `mica.errors.codes` maps its
code to a class and a hint. The rest of this package calls the kernel through `call`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pyarrow as pa

from mica.errors import MicaError, StorageError, UserError
from mica.storage.local import ERRNO_CODES

#: Its allocator reads this once, when it is loaded: for how many milliseconds freed memory is kept. By default it goes
#: back within ten, and the pages of the next batch are mapped anew, which takes a third of an ingest.
_KEPT, _WHILE = "MIMALLOC_PURGE_DELAY", "1000"
_given = os.environ.get(_KEPT)
os.environ.setdefault(_KEPT, _WHILE)
try:
    from mica import _native as native
except ImportError as e:  # a checkout without a build: say what to do, not only which file is missing
    raise ImportError(f"mica's native kernel is not built or does not fit this Python ({e}): run `make setup`") from e
finally:
    if _given is None:
        del os.environ[_KEPT]

__all__ = ["P", "T", "call", "native", "to_error", "version"]

P = ParamSpec("P")
T = TypeVar("T")


def version() -> str:
    """Returns the version of the kernel, which equals the package's."""
    return native.__version__


def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls a function of the kernel and translates its errors, also for types and numbers that it cannot accept."""
    try:
        return function(*args, **kwargs)
    except native.KernelError as e:
        raise to_error(e) from None
    except (pa.ArrowException, OverflowError) as e:
        first = str(e).partition("\n")[0]
        raise UserError("UNSUPPORTED_TYPE", f"the kernel cannot accept or return this: {first}") from None


def to_error(e: native.KernelError) -> MicaError:
    """Translates the kernel's error, with its place (rule, path, row, offset) as context."""
    places = {"rule": e.rule, "path": e.path, "row": e.row, "offset": e.offset}
    number = re.search(r"\(os error (\d+)\)", e.message) if e.code in ("IO", "CORRUPT_FILE") else None
    known = ERRNO_CODES.get(int(number[1])) if number is not None else None
    if known is not None:
        return StorageError(known[0], e.message, hint=known[2], **places)
    from mica.errors.codes import CODES

    row = CODES[e.code]
    return row.kinds[0](e.code, e.message, hint=row.way_out, **places)
