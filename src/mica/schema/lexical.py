"""Comments, strings and quoted names in texts of SQL and DDL, as parts of regular expressions with any flags.

The rule: a piece ends where Spark's lexer ends it. `/* /* */ */` is one comment, four levels deep at most; a line that
ends with a backslash goes on with the next. Nothing of a comment is read twice: no repetition gives back what it took.
A repeated group is an atomic one for that, `(?>(?:a|b)*)`: before 3.11.5, Debian's Python too, `(?:a|b)*` with a `+`
after it misses matches (CPython's issue 106052).
Who goes through a whole text asks for `REST` after these, or each quote of a string that never ends is looked at to the
end of the text.

Source: Spark's SqlBaseLexer.g4: SIMPLE_COMMENT, BRACKETED_COMMENT, STRING_LITERAL, DOUBLEQUOTED_STRING and
BACKQUOTED_IDENTIFIER.
"""

from __future__ import annotations

_LINE = r"--(?>(?:[^\r\n\\]++|\\\n|\\)*)"
_INSIDE = r"[^/*]++|(?!\*/|/\*(?!\+))[\s\S]"


def _bracketed(levels: int) -> str:
    """What follows the opening of a comment, with comments in it."""
    inner = rf"/\*(?!\+){_bracketed(levels - 1)}|" if levels > 1 else ""
    return rf"(?>(?:{inner}{_INSIDE})*)\*/"


#: A comment; `/*+ … */` is a hint and none.
COMMENT = rf"(?:{_LINE}|/\*(?!\+){_bracketed(4)})"
#: What is skipped in a text that Spark reads after mica: hints too.
SKIPPED = rf"(?:{_LINE}|/\*{_bracketed(4)})"
#: What may stand between two words, and what parts them.
GAP = rf"(?>(?:\s|{SKIPPED})*)"
SPACE = rf"(?>(?:\s|{SKIPPED})+)"

#: A string, in which a quote is doubled or follows a backslash.
QUOTED_STRING = r"""(?>'(?:[^'\\]|\\[\s\S]|'')*'|"(?:[^"\\]|\\[\s\S]|"")*")"""
#: A string whose backslashes are its own.
RAW_STRING = r"""(?<!\w)[rR](?>'[^']*'|"[^"]*")"""
#: A name in backticks, in which one is doubled.
QUOTED_NAME = r"(?>`(?:[^`]|``)*`)"
#: All from a string, name or hint on that begins and never ends, where none of the above matches: no engine runs such a
#: text.
REST = r"""(?:['"`]|/\*\+)[\s\S]*+"""
#: Half of a character, which a text of Python may hold and UTF-8 cannot.
HALF = "[\ud800-\udfff]"
