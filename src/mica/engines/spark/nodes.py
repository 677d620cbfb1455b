"""Catalyst's expressions as plain data.

The rule: a `Node` holds what distinguishes an expression from others, so that whoever reads it needs no JVM.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from mica.cached import cached_property
from mica.records import dataclass


@dataclass(frozen=True)
class Node:
    """A Catalyst expression as plain data: its class, and what distinguishes it from others of the class.

    `value` is a column's name, a literal's value as text (None: NULL), a field's name, a path, a list's texts or an
    escape character; `type` the type as DDL; `strict` whether a failing cast is an error (None: unknown).
    """

    name: str
    children: tuple[Node, ...] = ()
    value: Any = None
    type: str = ""
    strict: bool | None = None


class Tree:
    """A Catalyst expression. Each call into the JVM takes time, so each part is asked for once."""

    def __init__(self, java: Any) -> None:
        self.java = java

    @cached_property
    def name(self) -> str:
        """Its class."""
        return str(self.java.nodeName())

    @cached_property
    def children(self) -> tuple[Tree, ...]:
        """Its operands."""
        return tuple(map(Tree, items(self.java.children())))

    @cached_property
    def references(self) -> frozenset[int]:
        """The ids of the columns in it."""
        return frozenset((self.number,)) if self.is_column else ids(self.java.references())

    @cached_property
    def number(self) -> int:
        """The id of a column or of a named expression."""
        return int(self.java.exprId().id())

    @cached_property
    def type(self) -> str:
        """Its type as DDL."""
        return str(self.java.dataType().sql())

    @property
    def is_column(self) -> bool:
        """Whether it is a column alone."""
        return self.name == "AttributeReference"

    @cached_property
    def text(self) -> str | None:
        """The value of a literal; None for NULL, and for anything else."""
        if self.name != "Literal":
            return None
        value = self.java.value()
        return None if value is None else _plain(value)

    @cached_property
    def strict(self) -> bool | None:
        """Whether a cast that fails, or a sum that is too large, is an error; None where it depends on the value, and
        of a sum whose bits are cut. Without ANSI only casts from Variants are (measured on 4.2.1 and 4.3.0)."""
        if self.name == "VariantGet":
            return bool(self.java.failOnError())
        mode = str(self.java.evalMode().toString())
        if mode == "LEGACY" and self.children[0].type == "VARIANT":
            return True
        return {"ANSI": True, "TRY": False}.get(mode)

    @cached_property
    def field(self) -> str:
        """The name of a field that is taken out of a struct."""
        return str(self.java.extractFieldName())

    @property
    def renamed(self) -> tuple[int, int] | None:
        """The old and the new id of a column that a list of columns only passes on."""
        if self.is_column:
            return self.number, self.number
        if self.name == "Alias" and self.children[0].is_column:
            return self.children[0].number, self.number
        return None

    def conjuncts(self) -> Iterator[Tree]:
        """The parts of an AND."""
        if self.name == "And":
            for child in self.children:
                yield from child.conjuncts()
        else:
            yield self


#: What a column is, by its id: one of a relation (its name), another expression, or unknown.
Known = Callable[[int], "str | Tree | None"]


def node(tree: Tree, known: Known) -> Node:
    """An expression as plain data; `known` says what its columns are."""
    name = tree.name
    if name == "AttributeReference":
        found = known(tree.number)
        if isinstance(found, Tree):
            return node(found, known)
        return Node(name if found is None else "Column", value=found, type=tree.type)
    if name == "Alias":
        return node(tree.children[0], known)
    if name == "Literal":
        return Node(name, value=tree.text, type=tree.type)
    if name == "InSet":
        values = tree.java.hset()
        texts = str(values.mkString("\x1f")).split("\x1f")
        complete = len(texts) == int(values.size()) and not values.contains(None)
        (child,) = tree.children
        return Node(name, (node(child, known),), tuple(texts) if complete else None, child.type)
    children = tuple(node(child, known) for child in tree.children)
    if name in ("VariantGet", "Cast", "Add", "Subtract", "Multiply"):
        return Node(name, children, type=tree.type, strict=tree.strict)
    if name == "GetStructField":
        return Node(name, children, tree.field, tree.type)
    if name == "Like":
        return Node(name, children, str(tree.java.escapeChar()))
    return Node(name, children, type=tree.type if name in _TYPED else "")


#: Functions that are compared, or whose rules depend on their types.
_TYPED = frozenset(
    "AddMonths CaseWhen Ceil Coalesce Concat DateAdd DateAddYMInterval DateDiff DateFormatClass DateFromUnixDate "
    "DateSub DayOfMonth DayOfYear Divide Floor FromUnixTime Hour If IntegralDivide LastDay Length MicrosToTimestamp "
    "MillisToTimestamp Minute Month Quarter Round Second SecondsToTimestamp Substring TimeAdd TimestampAddInterval "
    "ToUnixTimestamp TruncDate TruncTimestamp UnaryMinus UnixDate UnixMicros UnixMillis UnixSeconds UnixTimestamp "
    "Year".split()
)


def items(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    return (sequence.apply(i) for i in range(int(sequence.size())))


def names_of(schema: Any) -> list[str]:
    """The names of the columns of a schema of the JVM, in one call: of a Java array each element is two."""
    try:
        text = str(schema.json())
    except Exception:  # noqa: BLE001 - Spark writes no type of a text whose collation is not certain, and shows its rows
        return list(map(str, schema.fieldNames()))
    return [field["name"] for field in json.loads(text)["fields"]]


def leaves(plan: Any) -> Iterator[Any]:
    """The nodes of a plan, and of its subqueries, that have none below them."""
    return (leaf for _, leaf in leaves_below(plan, plan))


def leaves_below(plan: Any, above: Any) -> Iterator[tuple[Any, Any]]:
    """The same, each with the node right above it; `above` that of the plan."""
    below = list(items(plan.children()))
    if not below:
        yield above, plan
    for child in (*below, *items(plan.subqueries())):
        yield from leaves_below(child, plan)


def ids(attributes: Any) -> frozenset[int]:
    """The ids of a set of attributes; perhaps more, if names look like ids."""
    return frozenset(int(number) for number in re.findall(r"#(\d+)", str(attributes.toString())))


def ids_of(attributes: Any) -> list[int]:
    """The ids of a Scala sequence of attributes, in their order: from their texts, since each that is asked by itself
    is some calls of the JVM, which for a thousand columns took longer than the query."""
    found = [_ID.search(text) for text in str(attributes.mkString(_BETWEEN)).split(_BETWEEN)]
    numbers = [int(one[1]) for one in found if one is not None]
    if len(numbers) == len(found) == int(attributes.size()):
        return numbers
    return [int(attribute.exprId().id()) for attribute in items(attributes)]


#: What ends the text of an attribute: its id, and a letter that Spark puts after it for some types.
_ID = re.compile(r"#(\d+)[A-Z]?\Z")
_BETWEEN = "\x1f\x1e"


def _plain(value: Any) -> str:
    """A value of the JVM, which py4j may have converted, as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value.toString() if hasattr(value, "toString") else value)
