"""Comments in texts of SQL and DDL, as parts of regular expressions.

The rule: a comment ends where Spark's lexer ends it. `/* /* */ */` is one, four levels deep at most; a line that ends
with a backslash goes on with the next. Nothing is read twice: no repetition gives back what it took.

Source: Spark's SqlBaseLexer.g4, SIMPLE_COMMENT and BRACKETED_COMMENT.
"""

from __future__ import annotations

_LINE = r"--(?:[^\r\n\\]++|\\\n|\\)*+"
_INSIDE = r"[^/*]++|(?!\*/|/\*(?!\+))[\s\S]"


def _bracketed(levels: int) -> str:
    """What follows the opening of a comment, with comments in it."""
    inner = rf"/\*(?!\+){_bracketed(levels - 1)}|" if levels > 1 else ""
    return rf"(?:{inner}{_INSIDE})*+\*/"


#: A comment; `/*+ … */` is a hint and none.
COMMENT = rf"(?:{_LINE}|/\*(?!\+){_bracketed(4)})"
#: What is skipped in a text that Spark reads after mica: hints too.
SKIPPED = rf"(?:{_LINE}|/\*{_bracketed(4)})"
