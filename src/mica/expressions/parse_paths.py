"""Parses the paths into Variants that stand in expressions: `v:a.b[0]`.

The rule: a key means what it means to Spark, which parses the text of the path again; a key that Spark would read
differently is rejected.
"""

from __future__ import annotations

from mica.expressions.cursor import Cursor
from mica.expressions.tokens import syntax_error
from mica.variant.path import Step, VariantPath, key_in


class PathParser(Cursor):
    """Reads paths."""

    def path(self) -> VariantPath:
        """Reads what follows the colon: a name or a bracket first, then .names and brackets."""
        steps: list[Step] = []
        while True:
            if self.mark() == "[":
                self.at += 1
                steps.append(self.bracket())
                self.expect("]")
            elif not steps or self.mark() == ".":
                if steps:
                    self.at += 1
                steps.append(self.path_key())
            else:
                return VariantPath(tuple(steps))

    def path_key(self) -> str:
        """Reads a key, with or without backticks."""
        at, quoted = self.token.at, self.token.kind == "quoted"
        if self.token.kind == "number":
            self.fail("a key is expected (a key that is a number is written ['0'])")
        key = self.identifier()
        if quoted and (not key or any(c in key for c in ".[")):
            # Spark appends the name to the path's text and parses that again: `a.b` becomes two keys.
            hint = f"Write it as {VariantPath((key,))}."
            raise syntax_error(self.text, at, f"Spark reads the key {key!r} in backticks differently", hint)
        return key

    def text_key(self) -> str:
        """Reads a key in quotes; several strings are one, as elsewhere in SQL."""
        at, text = self.at, self.token.text
        found = self.string()
        return key_in(text) if self.at == at + 1 and text[0] in "'\"" else found

    def bracket(self) -> Step:
        """Reads what stands in brackets: a key in quotes, or a position."""
        if self.at_string:
            return self.text_key()
        if self.token.kind == "number" and self.token.text.isdecimal():
            index = int(self.token.text)
            if index >= 2**31:
                self.fail("a position must be 2147483647 or less")
            self.at += 1
            return index
        raise self.error("a 'key' or a position is expected")
