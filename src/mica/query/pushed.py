"""Translates a conjunct of Spark's optimised plan into the text of a scan's predicate.

The rule: a conjunct is translated only if every part of it stands in a table of this file, with its types as Catalyst
resolved them. Whatever is not there stays with Spark. `None` means that. Of some parts mica knows the bounds alone:
what overflows, is rounded or is spelled as a text is Spark's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial

from mica.engines.spark.nodes import Node
from mica.records import dataclass
from mica.schema.literals import show
from mica.schema.spelling import quote_if_needed
from mica.schema.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

_COMPARISONS: Mapping[str, str] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_PATTERNS: Mapping[str, str] = {"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}
_JOINS: Mapping[str, str] = {"And": "AND", "Or": "OR"}
#: Functions of times, which mica and Spark compute alike.
_PARTS: Mapping[str, str] = {
    "Hour": "hour",
    "Minute": "minute",
    "Second": "second",
    "Year": "year",
    "Month": "month",
    "DayOfMonth": "day",
    "LastDay": "last_day",
    "UnixDate": "unix_date",
    "UnixMicros": "unix_micros",
    "UnixMillis": "unix_millis",
    "UnixSeconds": "unix_seconds",
    "DateFromUnixDate": "date_from_unix_date",
    "MicrosToTimestamp": "timestamp_micros",
    "MillisToTimestamp": "timestamp_millis",
    "SecondsToTimestamp": "timestamp_seconds",
    "DateAdd": "date_add",
    "DateSub": "date_sub",
    "DateDiff": "datediff",
}
#: Operators and functions by whose bounds files are skipped.
_OPERATORS: Mapping[str, str] = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "IntegralDivide": "div",
    "DateAddYMInterval": "+",
    "TimestampAddInterval": "+",
    "TimeAdd": "+",
}
_BOUNDED: Mapping[str, str] = {
    "AddMonths": "add_months",
    "Ceil": "ceil",
    "DayOfYear": "dayofyear",
    "Floor": "floor",
    "FromUnixTime": "from_unixtime",
    "If": "if",
    "Quarter": "quarter",
    "Round": "round",
}
_TEXTS: Mapping[str, str] = {"Concat": "concat", "Length": "length", "Substring": "substring"}
_SKIPPING = frozenset(("CaseWhen", "UnaryMinus", "UnixTimestamp", "ToUnixTimestamp", *_OPERATORS, *_BOUNDED))
#: Expressions whose parts are all evaluated for every row.
_VALUES = frozenset(
    ("Column", "GetStructField", "VariantGet", "Cast", "Literal", "TruncDate", "TruncTimestamp", *_PARTS)
)
#: Those of which every row evaluates the first part, and some rows the others; and sums that may be too large.
_CONDITIONAL = frozenset(("CaseWhen", "Coalesce", "If", "And", "Or", "In"))
_ARITHMETIC = frozenset(("Add", "Subtract", "Multiply"))
_NULLS: Mapping[str, str] = {"IsNull": "IS NULL", "IsNotNull": "IS NOT NULL"}
#: Functions that fail where a value is too large.
_OVERFLOWING = frozenset(("MillisToTimestamp", "SecondsToTimestamp"))
#: What is not true where an operand (of a list: the value) is null.
_STRICT = frozenset((*_COMPARISONS, *_PATTERNS, "In", "InSet", "Like", "IsNotNull")) - {"EqualNullSafe"}
#: Suffixes of numbers by type.
_SUFFIXES: Mapping[str, str] = {"TINYINT": "Y", "SMALLINT": "S", "INT": "", "BIGINT": "L"}
#: What a path may be read as, with the same result in Spark and in mica.
_EXTRACTED = frozenset("STRING BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DATE TIMESTAMP TIMESTAMP_NTZ".split())
_TIMES = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))
_NUMBERS = frozenset((*_SUFFIXES, "FLOAT", "DOUBLE", "DECIMAL"))
_PREDICATES = frozenset((*_COMPARISONS, *_PATTERNS, *_JOINS, *_NULLS, "Not", "In", "InSet", "Like"))
#: Casts that widen a number without loss: from → to.
_WIDER: Mapping[str, frozenset[str]] = {
    "TINYINT": frozenset(("SMALLINT", "INT", "BIGINT", "DOUBLE")),
    "SMALLINT": frozenset(("INT", "BIGINT", "DOUBLE")),
    "INT": frozenset(("BIGINT", "DOUBLE")),
    "FLOAT": frozenset(("DOUBLE",)),
}


@dataclass(frozen=True)
class Pushed:
    """A conjunct as a predicate of a scan. `strict`: it may raise for a value that cannot be cast; `skips`: it skips
    files, and only Spark evaluates it: it compares by a collation, casts texts, whose errors are Spark's, or has parts
    of which only bounds are known."""

    text: str
    strict: bool = False
    skips: bool = False


def translate(node: Node) -> Pushed | None:
    """The conjunct as a predicate; None if a part of it is not known here."""
    try:
        text = _text(node)
    except _Unknown:
        return None
    return Pushed(text, _fails(node), any(" COLLATE " in n.type or _only_skips(n) for n in _every(node)))


def value_text(node: Node) -> str | None:
    """The text of an expression that is evaluated for every row; None if a part of it is not known here."""
    if node.name == "Literal" and node.value is None and node.type != "VOID":
        return f"CAST(NULL AS {node.type})"
    nodes = _every(node)
    others = [one for one in nodes if one.name not in _VALUES]
    if not all(map(_is_computed, others)) or any(_only_skips(one) for one in nodes if one.name in _VALUES):
        return None
    if others and any(" COLLATE " in one.type for one in nodes):
        return None
    try:
        return _text(node)
    except _Unknown:
        return None


def implied(node: Node, others: Iterable[Node]) -> bool:
    """Whether a conjunct `v IS NOT NULL` follows from another one: a comparison of a path of `v` is not true where `v`
    is null. Whether a Variant is null costs more to read than its paths."""
    if node.name != "IsNotNull" or node.children[0].name != "Column" or node.children[0].type != "VARIANT":
        return False
    return any(_rejects_null(other, str(node.children[0].value)) for other in others)


def _rejects_null(node: Node, column: str) -> bool:
    if node.name not in _STRICT:
        return False
    for side in node.children[:2] if node.name in _COMPARISONS else node.children[:1]:
        inner = side.children[0] if side.name == "Cast" else side
        if inner.name == "VariantGet" and inner.children[0].value == column:
            return True
    return False


def _is_computed(node: Node) -> bool:
    """Whether mica computes it of its parts as Spark does, and fails where Spark does."""
    if node.name in _ARITHMETIC:
        return node.strict is True and {node.type, *map(_type, node.children)} <= {"INT", "BIGINT", "DOUBLE"}
    if node.name in _CONDITIONAL:
        return not any(map(_fails, node.children[1:]))
    return node.name in _TEXTS or node.name in _PREDICATES


def _fails(node: Node) -> bool:
    """Whether it fails for some values."""
    return any(
        n.name in _OVERFLOWING
        or (n.name in _ARITHMETIC and n.strict)
        or (n.name in ("VariantGet", "Cast") and n.strict and n.type != "STRING")
        for n in _every(node)
    )


def _only_skips(node: Node) -> bool:
    """Whether mica knows its bounds, and Spark its value."""
    return node.name in _SKIPPING or (node.name == "Cast" and _bounded_cast(node))


def _bounded_cast(node: Node) -> bool:
    """Whether a cast keeps the order, as of texts of times as far as one can tell, and is no other rule's."""
    (child,) = node.children
    source, target = (t.split("(")[0] for t in (_type(child), node.type))
    if child.name == "VariantGet" and child.type == "VARIANT":
        return False
    if source == "STRING":
        return target in _TIMES
    if source in _NUMBERS:
        return (target in _NUMBERS and node.type not in _WIDER.get(source, ())) or target == "TIMESTAMP"
    if source == "TIMESTAMP" and target in ("BIGINT", "DOUBLE"):
        return True
    return source in _TIMES and (target == "STRING" or target in _TIMES - {"DATE"})


class _Unknown(Exception):  # noqa: N818 - it ends the translation, and no caller sees it
    pass


def _every(node: Node) -> list[Node]:
    return [node, *(inner for child in node.children for inner in _every(child))]


def _text(node: Node) -> str:
    rule = _RULES.get(node.name)
    if rule is None:
        raise _Unknown
    return rule(node)


def _compared(node: Node) -> str:
    left, right = node.children
    _refuse_mixed(left, right)
    return f"({_text(left)} {_COMPARISONS[node.name]} {_text(right)})"


def _joined(node: Node) -> str:
    return f"({f' {_JOINS[node.name]} '.join(map(_text, node.children))})"


def _listed(node: Node) -> str:
    value, *options = node.children
    _refuse_mixed(value, *options)
    return f"({_text(value)} IN ({', '.join(map(_text, options))}))"


def _set(node: Node) -> str:
    (value,) = node.children
    if not node.value:
        raise _Unknown
    options = [_text(Node("Literal", value=text, type=node.type)) for text in node.value]
    return f"({_text(value)} IN ({', '.join(options)}))"


def _matched(node: Node) -> str:
    left, right = node.children
    _refuse_mixed(left, right)
    return f"{_PATTERNS[node.name]}({_text(left)}, {_text(right)})"


def _like(node: Node) -> str:
    left, right = node.children
    _refuse_mixed(left, right)
    if right.name != "Literal" or len(str(node.value)) != 1:
        raise _Unknown
    escape = show(str(node.value), STRING)
    return f"({_text(left)} LIKE {_text(right)} ESCAPE {escape})"


def _refuse_mixed(*sides: Node) -> None:
    """Catalyst gives both sides of a comparison one type; a difference would be one that this file does not know."""
    if len({_type(side) for side in sides} - {"VOID"}) > 1:
        raise _Unknown


def _type(node: Node) -> str:
    if node.name in _PREDICATES:
        return "BOOLEAN"
    return "STRING" if node.type.startswith("STRING") else node.type or node.name


def _column(node: Node) -> str:
    return quote_if_needed(str(node.value))


def _field(node: Node) -> str:
    (child,) = node.children
    if child.name not in ("Column", "GetStructField"):
        raise _Unknown
    return f"{_text(child)}.{quote_if_needed(str(node.value))}"


def _got(node: Node) -> str:
    value, path = node.children
    wanted = node.type.startswith("DECIMAL(") or node.type in _EXTRACTED
    if value.name != "Column" or path.name != "Literal" or path.value is None or not wanted:
        raise _Unknown
    name = "variant_get" if node.strict else "try_variant_get"
    return f"{name}({_text(value)}, {show(path.value, STRING)}, '{node.type}')"


def _cast(node: Node) -> str:
    (child,) = node.children
    if child.name == "VariantGet" and child.type == "VARIANT" and node.strict is not None:
        return _got(Node("VariantGet", child.children, type=node.type, strict=node.strict))
    if node.type in _WIDER.get(child.type, ()):
        return f"CAST({_text(child)} AS {node.type})"
    if _bounded_cast(node):
        return f"{'TRY_CAST' if node.strict is False else 'CAST'}({_text(child)} AS {node.type})"
    if node.type == "DATE" and child.type in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return f"CAST({_text(child)} AS DATE)"
    raise _Unknown


def _truncated(node: Node) -> str:
    unit, time = node.children
    if unit.name != "Literal" or unit.value is None:
        raise _Unknown
    return f"date_trunc({_text(unit)}, {_text(time)})"


def _truncated_date(node: Node) -> str:
    date, unit = node.children
    if unit.name != "Literal" or unit.value is None:
        raise _Unknown
    return f"trunc({_text(date)}, {_text(unit)})"


def _formatted(node: Node) -> str:
    time, pattern, *_ = node.children
    if pattern.name != "Literal" or pattern.value is None:
        raise _Unknown
    return f"date_format({_text(time)}, {_text(pattern)})"


def _operated(node: Node) -> str:
    left, right = node.children
    return f"({_text(left)} {_OPERATORS[node.name]} {_text(right)})"


def _seconds(node: Node) -> str:
    time, _ = node.children
    if _type(time) not in _TIMES:  # texts have patterns
        raise _Unknown
    return f"unix_timestamp({_text(time)})"


def _chosen(node: Node) -> str:
    parts = list(map(_text, node.children))
    last = f" ELSE {parts.pop()}" if len(parts) % 2 else ""
    ways = (f" WHEN {when} THEN {then}" for when, then in zip(parts[::2], parts[1::2], strict=True))
    return f"CASE{''.join(ways)}{last} END"


def _called(name: str, node: Node) -> str:
    return f"{name}({', '.join(map(_text, node.children))})"


def _coalesced(node: Node) -> str:
    _refuse_mixed(*node.children)
    return _called("coalesce", node)


def _spelled(node: Node) -> str:
    if any(_type(one) not in ("STRING", "INT") or " COLLATE " in one.type for one in (node, *node.children)):
        raise _Unknown  # of bytes, or by a collation
    return _called(_TEXTS[node.name], node)


def _literal(node: Node) -> str:
    value, type_ = node.value, node.type.split(" COLLATE ")[0]
    if value is None:
        return "NULL"
    if type_ == "STRING":
        return show(value, STRING)
    if type_ in _SUFFIXES:
        return f"{value}{_SUFFIXES[type_]}" if not value.startswith("-") else f"(- {value[1:]}{_SUFFIXES[type_]})"
    if type_ == "BOOLEAN":
        return str(value).upper()
    if type_ in ("DOUBLE", "FLOAT"):
        if not math.isfinite(float(value)):
            raise _Unknown
        return f"CAST('{value}' AS {type_})"
    if type_.startswith("DECIMAL("):
        try:
            return f"CAST('{Decimal(value):f}' AS {type_})"
        except InvalidOperation:
            raise _Unknown from None
    if type_.startswith("INTERVAL "):
        return _span(int(value), type_)
    if type_ in _TIMES:
        return show(int(value), {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ}[type_])
    raise _Unknown


def _span(count: int, type_: str) -> str:
    if type_.endswith(("YEAR", "MONTH")):
        return f"INTERVAL '{count}' MONTH"
    sign, (seconds, micros) = "-" if count < 0 else "", divmod(abs(count), 1_000_000)
    return f"INTERVAL '{sign}{seconds}.{micros:06}' SECOND"


_RULES: Mapping[str, Callable[[Node], str]] = {
    **dict.fromkeys(_COMPARISONS, _compared),
    **dict.fromkeys(_JOINS, _joined),
    **dict.fromkeys(_PATTERNS, _matched),
    **dict.fromkeys(_NULLS, lambda node: f"({_text(node.children[0])} {_NULLS[node.name]})"),
    **{name: partial(_called, own) for name, own in (*_PARTS.items(), *_BOUNDED.items())},
    **dict.fromkeys(_OPERATORS, _operated),
    **dict.fromkeys(("UnixTimestamp", "ToUnixTimestamp"), _seconds),
    "CaseWhen": _chosen,
    "UnaryMinus": lambda node: f"(- {_text(node.children[0])})",
    "Coalesce": _coalesced,
    **dict.fromkeys(_TEXTS, _spelled),
    "DateFormatClass": _formatted,
    "TruncDate": _truncated_date,
    "TruncTimestamp": _truncated,
    "Not": lambda node: f"(NOT {_text(node.children[0])})",
    "In": _listed,
    "InSet": _set,
    "Like": _like,
    "Column": _column,
    "GetStructField": _field,
    "VariantGet": _got,
    "Cast": _cast,
    "Literal": _literal,
}
