"""Catalyst's expressions as plain data.

The rule: a `Node` holds what tells an expression from others, so that whoever reads it needs no JVM.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

#: What an attribute is: a column of a relation (its name), another expression, or unknown.
Known = Callable[[int], "str | Any | None"]


@dataclass(frozen=True)
class Node:
    """A Catalyst expression as plain data: its class, and what the class needs to be told from others.

    `value` is a column's name, a literal's value as text (None: NULL), a field's name, a path, a list's texts or an
    escape character; `type` the type as DDL; `strict` whether a failing cast is an error (None: unknown).
    """

    name: str
    children: tuple[Node, ...] = ()
    value: Any = None
    type: str = ""
    strict: bool | None = None


def node(java: Any, known: Known) -> Node:
    """An expression as plain data; `known` says what its attributes are, by id."""
    name = str(java.nodeName())
    if name == "AttributeReference":
        found = known(int(java.exprId().id()))
        if found is not None and not isinstance(found, str):
            return node(found, known)
        return Node(name if found is None else "Column", value=found, type=str(java.dataType().sql()))
    if name == "Alias":
        return node(java.child(), known)
    if name == "Literal":
        value = java.value()
        return Node(name, value=None if value is None else _plain(value), type=str(java.dataType().sql()))
    if name == "InSet":
        values = java.hset()
        texts = str(values.mkString("\x1f")).split("\x1f")
        complete = len(texts) == int(values.size()) and not values.contains(None)
        return Node(name, (node(java.child(), known),), tuple(texts) if complete else None, _type(java.child()))
    children = tuple(node(child, known) for child in items(java.children()))
    if name == "VariantGet":
        return Node(name, children, type=_type(java), strict=bool(java.failOnError()))
    if name == "Cast":
        return Node(name, children, type=_type(java), strict=strict(java))
    if name == "GetStructField":
        return Node(name, children, str(java.extractFieldName()), _type(java))
    if name == "Like":
        return Node(name, children, str(java.escapeChar()))
    return Node(name, children, type=_type(java) if name in _TYPED else "")


#: Functions whose rules depend on their types.
_TYPED = frozenset("MicrosToTimestamp TruncTimestamp".split())


def strict(cast: Any) -> bool | None:
    """Whether a failing cast is an error; None where it depends on the value. Without ANSI only casts from Variants
    are (measured on 4.2.1 and 4.3.0)."""
    mode = str(cast.evalMode().toString())
    if mode == "LEGACY" and str(cast.child().dataType().sql()) == "VARIANT":
        return True
    return {"ANSI": True, "TRY": False}.get(mode)


def items(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    return (sequence.apply(i) for i in range(int(sequence.size())))


def ids(attributes: Any) -> frozenset[int]:
    """The ids of a set of attributes; perhaps more, if names look like ids."""
    return frozenset(int(number) for number in re.findall(r"#(\d+)", str(attributes.toString())))


def ids_of(attributes: Iterable[Any]) -> list[int]:
    """The ids of attributes, in their order."""
    return [int(attribute.exprId().id()) for attribute in attributes]


def conjuncts(java: Any) -> Iterator[Any]:
    """The parts of an AND."""
    if str(java.nodeName()) == "And":
        yield from conjuncts(java.left())
        yield from conjuncts(java.right())
    else:
        yield java


def renamed(java: Any) -> tuple[int, int] | None:
    """The old and the new id of a column that a list of columns only passes on."""
    name = str(java.nodeName())
    if name == "AttributeReference":
        number = int(java.exprId().id())
        return number, number
    if name == "Alias" and str(java.child().nodeName()) == "AttributeReference":
        return int(java.child().exprId().id()), int(java.exprId().id())
    return None


def _type(java: Any) -> str:
    return str(java.dataType().sql())


def _plain(value: Any) -> str:
    """A value of the JVM, which py4j may have converted, as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value.toString() if hasattr(value, "toString") else value)
