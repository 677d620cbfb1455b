"""Filters of pyarrow (`pc.field("a") > 1`), as far as they are certain in a scan.

The rule: an expression is read from its own serialization, which pickle uses: a record batch of the constants, whose
metadata is the tree. What is not known there is left to Arrow.

Source: Arrow C++, compute/expression.cc, Serialize.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mica.errors import MicaError
from mica.expressions.tree import Expr, Op
from mica.readers.terms import Term, Terms, negation, of_arrow

_COMPARISONS = {
    "equal": Op.EQ, "not_equal": Op.NE, "less": Op.LT, "less_equal": Op.LE, "greater": Op.GT, "greater_equal": Op.GE,
}  # fmt: skip
_LINE = re.compile(r"(call|field_ref|nested_field_ref|literal|options|end): '(.*)'")

#: A word of the serialization, and what it says: names, or the numbers of columns.
Word = tuple[str, str]
#: A node: its name ("column", "literal" or a function) and what is in it.
Node = tuple[str, Any]


def pushed(filter_: pc.Expression, terms: Terms) -> list[str]:
    """The texts of the conjuncts that the scan can take."""
    try:
        node = _Words(_words(filter_), _constants(filter_)).node()
        return terms.conjuncts(_Reader(terms).predicate(node, negated=False))
    except (pa.ArrowException, LookupError, ValueError, MicaError):
        return []


def columns_of(expression: pc.Expression) -> list[str] | None:
    """The columns that an expression reads; None if that is not known."""
    try:
        node = _Words(_words(expression), _constants(expression)).node()
    except (pa.ArrowException, LookupError, ValueError):
        return None
    found, todo = [], [node]
    while todo:
        name, parts = todo.pop()
        if name == "column":
            found.append(parts[0])
        elif name not in ("literal", "options"):
            todo += parts
    return found


def _serialized(filter_: pc.Expression) -> Any:
    return pa.ipc.open_file(filter_.__reduce__()[1][0])


def _constants(filter_: pc.Expression) -> list[Any]:
    return [column[0] for column in _serialized(filter_).get_batch(0).columns]


def _words(filter_: pc.Expression) -> list[Word]:
    """The tree as a flat list. Its names repeat, so it is read from the schema's text: `metadata` is a dict."""
    text = _serialized(filter_).schema.to_string(truncate_metadata=False, show_field_metadata=False)
    _, _, text = text.partition("-- schema metadata --\n")
    found = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(line)
        found.append((match[1], match[2]))
    return found


class _Words:
    """The words of an expression, read from left to right."""

    def __init__(self, words: Sequence[Word], constants: Sequence[Any]) -> None:
        self.words, self.constants, self.at = words, constants, 0

    def next(self) -> Word:
        self.at += 1
        return self.words[self.at - 1]

    def node(self) -> Node:
        kind, text = self.next()
        match kind:
            case "literal":
                return "literal", self.constants[int(text)]
            case "options":
                return "options", self.constants[int(text)]
            case "field_ref":
                return "column", (text,)
            case "nested_field_ref":
                return "column", tuple(self.name() for _ in range(int(text)))
            case "call":
                parts = []
                while self.words[self.at] != ("end", text):
                    parts.append(self.node())
                self.at += 1
                return text, parts
        raise ValueError(kind)

    def name(self) -> str:
        kind, text = self.next()
        if kind != "field_ref":
            raise ValueError(kind)
        return text


class _Reader:
    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def predicate(self, node: Node, *, negated: bool) -> Expr | None:
        """The node as a filter; `negated` if it is under an odd number of NOT."""
        name, parts = node
        terms = self.terms
        match name:
            case "and_kleene" | "or_kleene":
                found = [self.predicate(p, negated=negated) for p in parts]
                return terms.joined(found, conjunction=name == "and_kleene", negated=negated)
            case "invert":
                return negation(self.predicate(parts[0], negated=not negated))
            case "column" | "literal":
                return terms.true(self.term(node))
            case "is_valid":
                return terms.is_null(self.term(parts[0]), wanted=False)
            case "is_null" if not _option(parts, "nan_is_null"):
                return terms.is_null(self.term(parts[0]), wanted=True)
            case "is_in":
                return self.is_in(parts, negated=negated)
            case "starts_with" if not _option(parts, "ignore_case"):
                return terms.matches("startswith", self.term(parts[0]), str(_option(parts, "pattern")))
        if name in _COMPARISONS:
            return terms.compare(_COMPARISONS[name], self.term(parts[0]), self.term(parts[1]), negated=negated)
        return None

    def is_in(self, parts: list[Node], *, negated: bool) -> Expr | None:
        """A null is in the list, or not, as any other value; the result is never null."""
        of = self.term(parts[0])
        values = parts[1][1]["value_set"].values
        if of is None or parts[1][1]["null_matching_behavior"].as_py() != 0:
            return None
        found = self.terms.among(of, values, negated=negated)
        if found is None:
            return None
        # The mask of nulls makes of it what Arrow does: true or false, also for a null.
        nulls = self.terms.is_null(of, wanted=values.null_count > 0)
        return self.terms.joined([found, nulls], conjunction=values.null_count == 0, negated=negated)

    def term(self, node: Node) -> Term | None:
        name, value = node
        if name == "column":
            return self.terms.column(*value)
        if name == "literal" and value.is_valid:
            try:
                return of_arrow(value)
            except MicaError:
                return None
        return None


def _option(parts: list[Node], name: str) -> Any:
    return parts[-1][1][name].as_py()
