"""A path into a Variant, and its three spellings.

The rule: a path is a tuple of keys and positions. A text that does not spell exactly one path is rejected.

| spelling | example | used in |
|---|---|---|
| Spark's path string | `$.a['b c'][0]` | `variant_get(v, '…')` |
| SQL after the colon | `a['b c'][0]` | `v:…` |
| RFC 9535 normalized | `$['a']['b c'][0]` | the keys of bounds in the Delta log |

Source: Spark's VariantPathParser; RFC 9535, section 2.7.
"""

from __future__ import annotations

import re

from mica import late
from mica.errors import CorruptDataError, UserError
from mica.records import dataclass
from mica.schema.lexical import QUOTED_NAME, QUOTED_STRING, RAW_STRING
from mica.schema.literals import show
from mica.schema.spelling import unquote, unquoted
from mica.schema.types import STRING

Step = str | int

# Spark does not skip white space and has no escapes: a quoted key ends at the first quote.
_SPARK_STEP = late.pattern(r"""\.([^.\[]+)|\['([^']*)'\]|\["([^"]*)"\]|\[([0-9]+)\]""", re.DOTALL)
# As in SQL after the colon: names, in backticks if they are others, and strings with escapes.
_SQL_STEP = late.pattern(
    rf"""(?P<dot>\.?)(?:(?P<plain>[^\W\d]\w*)|(?P<tick>{QUOTED_NAME}))
      | \[\s*(?:(?P<raw>{RAW_STRING})|(?P<string>{QUOTED_STRING})|(?P<index>[0-9]+))\s*\]""",
    re.VERBOSE,
)
_NORMAL_STEP = late.pattern(r"\['((?:[^'\\\x00-\x1f]|\\(?:[bfnrt'\\]|u00[01][0-9a-f]))*)'\]|\[(0|[1-9][0-9]*)\]")
_STRING = late.pattern(QUOTED_STRING)
_PLAIN_KEY = late.pattern(r"[A-Za-z_][A-Za-z0-9_]*")

_SHORT = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "'": "\\'", "\\": "\\\\"}
_ESCAPED = {chr(c): f"\\u{c:04x}" for c in range(0x20)} | _SHORT
_ESCAPE = str.maketrans(_ESCAPED)
_LONG = {escaped[1:]: char for char, escaped in _SHORT.items()}
# Escapes that a normalized path must not use: \u000a, because \n exists.
_MUST_BE_SHORT = frozenset(f"u{ord(c):04x}" for c in _SHORT if c < " ")

_MAX_INDEX = 2**31 - 1


@dataclass(frozen=True)
class VariantPath:
    """Keys (str) and positions (int) from the root of a Variant; no steps means the root itself."""

    steps: tuple[Step, ...] = ()

    @classmethod
    def parse(cls, text: str) -> VariantPath:
        """Parses Spark's form, `$.a.b[0]['c d']`. Errors: INVALID_PATH with the offset."""
        if not text.startswith("$"):
            raise _bad(text, 0, "it must begin with $")
        steps: list[Step] = []
        at = 1
        while at < len(text):
            match = _SPARK_STEP.match(text, at)
            if match is None:
                raise _bad(text, at, "a .key, ['key'] or [position] is expected")
            if match[4] is not None:
                steps.append(_index(text, at, match[4]))
            else:
                steps.append(next(group for group in match.groups() if group is not None))
            at = match.end()
        return cls(tuple(steps))

    @classmethod
    def parse_sql(cls, text: str) -> VariantPath | None:
        """Parses what follows the colon in SQL, `a.b[0]['c d']`, which may name a key in backticks; None if it is not
        that. Errors: INVALID_PATH for a position that is too large."""
        steps: list[Step] = []
        at = 0
        while at < len(text) or not steps:
            match = _SQL_STEP.match(text, at)
            # Names have a dot between them, and none before the first.
            if match is None or (match["dot"] is not None and (match["dot"] == "") != (at == 0)):
                return None
            if match["index"] is not None:
                steps.append(_index(text, at, match["index"]))
            elif match["raw"] is not None:
                steps.append(match["raw"][2:-1])
            elif match["string"] is not None:
                steps.append(key_in(match["string"]))
            else:
                steps.append(match["plain"] or unquoted(match["tick"]))
            at = match.end()
        return cls(tuple(steps))

    @classmethod
    def parse_normalized(cls, text: str) -> VariantPath:
        """Parses a normalized path of RFC 9535. Errors: INVALID_PATH (CorruptDataError: users do not write these)."""
        if not text.startswith("$"):
            raise _not_normal(text)
        steps: list[Step] = []
        at = 1
        while at < len(text):
            match = _NORMAL_STEP.match(text, at)
            if match is None:
                raise _not_normal(text)
            if match[2] is not None:
                steps.append(int(match[2]))
            else:
                steps.append(_unescape(match[1], text) if "\\" in match[1] else match[1])
            at = match.end()
        return cls(tuple(steps))

    @property
    def normalized(self) -> str:
        """The RFC 9535 form: the key of this path's bounds."""
        return "$" + "".join(f"[{s}]" if isinstance(s, int) else f"['{s.translate(_ESCAPE)}']" for s in self.steps)

    @property
    def has_index(self) -> bool:
        """Whether the path goes through an array: such a path has no bounds."""
        return any(isinstance(s, int) for s in self.steps)

    def spark(self) -> str:
        """Returns Spark's form. Errors: INVALID_PATH for a key with both kinds of quotes, which Spark cannot spell."""
        parts = ["$"]
        for s in self.steps:
            if isinstance(s, int):
                parts.append(f"[{s}]")
            elif _PLAIN_KEY.fullmatch(s):
                parts.append(f".{s}")
            elif "'" not in s:
                parts.append(f"['{s}']")
            elif '"' not in s:
                parts.append(f'["{s}"]')
            else:
                raise UserError("INVALID_PATH", f"Spark cannot spell the key {s!r}: it contains both kinds of quotes")
        return "".join(parts)

    def __str__(self) -> str:
        """The form after the colon in SQL: `a.b[0]['c d']`. The root is `$`."""
        parts: list[str] = []
        for s in self.steps:
            if isinstance(s, int):
                parts.append(f"[{s}]")
            elif _PLAIN_KEY.fullmatch(s):
                parts.append(f".{s}" if parts else s)
            else:
                parts.append(f"[{_spelled(s)}]")
        return "".join(parts) or "$"


def key_in(literal: str) -> str:
    """The key of a string in brackets, given with its quotes. What stands between single quotes is the key as it is, as
    in Spark: `['\\n']` has two characters. Spark reads no other string there, nor a quote in one: these are strings of
    SQL."""
    inside = literal[1:-1]
    return inside if literal[0] == "'" and "'" not in inside else unquote(literal)


def _spelled(key: str) -> str:
    """The literal of a key."""
    as_it_is = f"'{key}'"
    if "'" not in key and "\n" not in key and _STRING.fullmatch(as_it_is):
        return as_it_is
    shown = show(key, STRING)
    return shown if "'" in key else '"' + shown[1:-1].replace('"', '\\"') + '"'


def _index(text: str, at: int, digits: str) -> int:
    index = int(digits)
    if index > _MAX_INDEX:
        raise _bad(text, at, f"a position must be {_MAX_INDEX} or less")
    return index


def _unescape(key: str, text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] != "u":
            return _LONG[code]
        if code in _MUST_BE_SHORT:
            raise _not_normal(text)
        return chr(int(code[1:], 16))

    return re.sub(r"\\(u....|.)", one, key)


def _bad(text: str, at: int, why: str) -> UserError:
    return UserError("INVALID_PATH", f"the path {text!r} cannot be read at offset {at}: {why}", offset=at)


def _not_normal(text: str) -> CorruptDataError:
    return CorruptDataError("INVALID_PATH", f"{text!r} is not a normalized path (RFC 9535, section 2.7)")
