"""Checks the Python types of the arguments of public calls.

The rule: an argument of a wrong type is refused by name, with INVALID_ARGUMENT, before the call does anything. Further
limits on values are checked by the code that uses them.

Each kind is one line of the table below; `@takes(path=PATH, version=COUNT)` names the kind of each checked argument.
None passes if it is the argument's default.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from numbers import Integral, Real
from typing import Any, Literal, ParamSpec, TypeVar

from mica.errors import UserError
from mica.records import dataclass

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Kind:
    """A kind of argument: its description for messages, and its test."""

    expected: str
    fits: Callable[[Any], bool]
    #: Whether a value may hold secrets: then an error names types only.
    secret: bool = False
    #: The value in the types of Python, of one that fits: an integer of numpy is not written as JSON.
    plain: Callable[[Any], Any] = lambda value: value


def _is_path(value: Any) -> bool:
    return _is_whole_text(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _is_open(value: Any) -> bool:
    return hasattr(value, "snapshot") and hasattr(value, "refresh")  # `log.opened.Opened`, which lies above


def _is_frame(value: Any) -> bool:
    return hasattr(value, "mapInArrow")  # a Connect session would fetch the schema from its server


def _is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping) and all(map(fits, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole_text(value: Any) -> bool:
    """Whether UTF-8 has it: Python's texts may hold halves of characters, as which it reads names of files that are no
    UTF-8."""
    return _is_text(value) and (value.isascii() or re.search("[\ud800-\udfff]", value) is None)


def _is_mapping(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, Mapping) and all(map(_is_whole_text, value)) and all(map(fits, value.values()))


def is_whole(value: Any) -> bool:
    """Whether it is an integer of Python or numpy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _whole(value: Any) -> Any:
    return int(value) if is_whole(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


PATH = Kind("a path or a URI", _is_path)
PATHS = Kind("a path, a pattern or a list of them", lambda v: _is_path(v) or _is_list(v, _is_path))
INPUTS = Kind(
    "a path, a pattern, a list of them, or a Spark DataFrame of one per row", lambda v: PATHS.fits(v) or _is_frame(v)
)
TABLE = Kind("a path or an open table", lambda v: _is_path(v) or _is_open(v))
TABLE_OR_FILES = Kind("a path, a pattern, a list of them, or an open table", lambda v: PATHS.fits(v) or _is_open(v))
TEXT = Kind("a string", _is_text)
STATEMENT = Kind("a string", _is_whole_text)
FLAG = Kind("True or False", lambda v: isinstance(v, bool))
COUNT = Kind("an integer of 0 or more", lambda v: is_whole(v) and v >= 0, plain=_whole)
SHARE = Kind("a share from 0 to 1", lambda v: _is_number(v) and 0 <= v <= 1)
SECONDS = Kind("a number of seconds above 0", lambda v: _is_number(v) and v > 0)
SIZE = Kind("a positive number of bytes or a text such as 128MB", lambda v: is_whole(v) or _is_text(v), plain=_whole)
TIME = Kind(
    "an ISO text, a datetime or date, or milliseconds since 1970",
    lambda v: is_whole(v) or (isinstance(v, str | date) and v == v),  # noqa: PLR0124 - pandas' NaT is a date
    plain=_whole,
)
NAMES = Kind("a list of strings", lambda v: _is_list(v, _is_text))
TEXTS = Kind("a dict of strings", lambda v: _is_mapping(v, _is_text))
EXPRESSIONS = Kind('a dict of columns to SQL texts, such as "1" or "\'a\'"', TEXTS.fits)
OPTIONS = Kind("a dict of strings", lambda v: _is_mapping(v, _is_text), secret=True)
CHANGES = Kind(
    "a dict of strings (None removes one)", lambda v: _is_mapping(v, lambda x: x is None or _is_whole_text(x))
)
_ALTERED = {"type": str, "nullable": bool, "comment": str, "default": str, "first": bool, "after": str}
ALTERATIONS = Kind(
    f"a dict of columns to what they get, a dict with some of {', '.join(_ALTERED)}",
    lambda v: _is_mapping(
        v, lambda x: isinstance(x, Mapping) and all(type(w) is _ALTERED.get(k) for k, w in x.items())
    ),
)
TXN = Kind(
    "a pair of an application id and a version of 0 or more",
    lambda v: isinstance(v, tuple | list) and len(v) == 2 and _is_text(v[0]) and COUNT.fits(v[1]) and v[1] < 1 << 63,
    plain=lambda v: (v[0], int(v[1])),
)
SHREDDING = Kind(
    "a dict of Variant columns to schemas, one schema (Spark DDL or a type), or rules",
    lambda v: _is_mapping(v, lambda _: True) or not isinstance(v, Mapping | list | tuple | set | bytes | int | float),
)
COLUMNS = Kind("a list of names, or a dict of names to expressions", lambda v: NAMES.fits(v) or TEXTS.fits(v))
SESSION = Kind("a SparkSession", lambda v: hasattr(v, "conf") and hasattr(v, "createDataFrame"))
CALLABLE = Kind("a function", callable)
VALUES = Kind("a list, or an Arrow array", lambda v: isinstance(v, Iterable) and not isinstance(v, str | bytes))


#: What to do if the target exists: add rows (`append`), refuse (`error`), leave it as it is (`ignore`), replace its
#: rows (`overwrite`).
Mode = Literal["append", "error", "ignore", "overwrite"]


def one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raises INVALID_ARGUMENT if the value is not one of the allowed ones."""
    if not _is_text(value) or value not in allowed:
        raise UserError.bad_value(name, value, " or ".join(map(repr, allowed)))


def takes(**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Checks the named arguments of a call against their kinds, and hands on plain values. Errors: INVALID_ARGUMENT."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # Python's error names the function
            for name, value in given.arguments.items():
                kind = kinds.get(name)
                if kind is not None:
                    refuse_other(name, value, kind, optional=signature.parameters[name].default is None)
                    given.arguments[name] = value if value is None else kind.plain(value)
            return function(*given.args, **given.kwargs)

        return checked

    return decorate


def refuse_other(name: str, value: Any, kind: Kind, *, optional: bool = False) -> None:
    """Raises INVALID_ARGUMENT if the value is not of the kind."""
    if (optional and value is None) or kind.fits(value):
        return
    wrong = UserError.bad_value(name, value, kind.expected)
    if kind.secret:
        wrong = UserError("INVALID_ARGUMENT", f"{name} must be {kind.expected}, got {_types(value)}")
    if half := re.search(r"\\ud[89a-f][0-9a-f]{2}", repr(value)):
        wrong.hint = f"'{half[0]}' is half of a character, which UTF-8 cannot write."
    raise wrong


def _types(value: Any) -> str:
    """The type of a value, without its content."""
    if not isinstance(value, Mapping):
        return f"a {type(value).__name__}"
    if all(map(_is_text, (*value, *value.values()))):
        return "a name with half of a character"
    wrong = next((n for n, v in value.items() if not _is_text(n) or not _is_text(v)), None)
    if not _is_text(wrong):
        return f"a dict with a name of type {type(wrong).__name__}"
    return f"a dict with a value of type {type(value[wrong]).__name__} under {wrong!r}"
