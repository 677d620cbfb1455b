"""Filters of polars (`pl.col("a") > 1`), as far as they are certain in a scan.

The rule: an expression is read from its own serialization as JSON. A shape that is not known, as of another version of
polars, is left to polars.
"""

from __future__ import annotations

import json
import warnings
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from mica.errors import MicaError
from mica.expressions.tree import Expr, Op
from mica.readers.terms import Term, Terms, constant, negation
from mica.schema.types import BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, decimal

_COMPARISONS = {
    "Eq": Op.EQ, "NotEq": Op.NE, "Lt": Op.LT, "LtEq": Op.LE, "Gt": Op.GT, "GtEq": Op.GE, "EqValidity": Op.SAFE_EQ,
    "NotEqValidity": Op.DISTINCT,
}  # fmt: skip
_JOINS = {"And": True, "LogicalAnd": True, "Or": False, "LogicalOr": False}
_CLOSED = {
    "Both": (Op.GE, Op.LE), "Left": (Op.GE, Op.LT), "Right": (Op.GT, Op.LE), "None": (Op.GT, Op.LT),
}  # fmt: skip
_MICROS = {"Microseconds": 1, "Milliseconds": 1_000}
_EXACT = Context(prec=40)  # the default one rounds at 28 digits
_INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32")


def pushed(predicate: Any, terms: Terms) -> list[str]:
    """The texts of the conjuncts that the scan can take."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JSON is not promised: other shapes are not read
            tree = json.loads(predicate.meta.serialize(format="json"))
        return terms.conjuncts(_Reader(terms).predicate(tree, negated=False))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, pa.ArrowException, MicaError):
        return []


class _Reader:
    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def predicate(self, tree: Any, *, negated: bool) -> Expr | None:
        """The tree as a filter; `negated` if it is under an odd number of NOT."""
        match tree:
            case {"BinaryExpr": {"left": left, "op": str(op), "right": right}}:
                if op in _JOINS:
                    sides = [self.predicate(side, negated=negated) for side in (left, right)]
                    return self.terms.joined(sides, conjunction=_JOINS[op], negated=negated)
                if op in _COMPARISONS:
                    return self.terms.compare(_COMPARISONS[op], self.term(left), self.term(right), negated=negated)
            case {"Function": {"input": [of, *others], "function": {"Boolean": kind}}}:
                return self.boolean(of, others, kind, negated=negated)
            case {"Function": {"input": [of, {"Literal": {"Scalar": {"String": str(prefix)}}}], "function": function}}:
                if function == {"StringExpr": "StartsWith"}:
                    return self.terms.matches("startswith", self.term(of), prefix)
            case {"Column": _} | {"Literal": _}:
                return self.terms.true(self.term(tree))
        return None

    def boolean(self, of: Any, others: list[Any], kind: Any, *, negated: bool) -> Expr | None:
        terms = self.terms
        match kind:
            case "Not":
                return negation(self.predicate(of, negated=not negated))
            case "IsNull" | "IsNotNull":
                return terms.is_null(self.term(of), wanted=kind == "IsNull")
            case {"IsBetween": {"closed": str(closed)}}:
                value, low, high = self.term(of), self.term(others[0]), self.term(others[1])
                above, below = _CLOSED[closed]
                sides = [
                    terms.compare(above, value, low, negated=negated),
                    terms.compare(below, value, high, negated=negated),
                ]
                return terms.joined(sides, conjunction=True, negated=negated)
            case {"IsIn": {"nulls_equal": False}}:
                return self.is_in(self.term(of), others[0], negated=negated)
        return None

    def is_in(self, of: Term | None, values: Any, *, negated: bool) -> Expr | None:
        """A null in the list makes what is not found null; such rows do not pass, and NOT keeps none of them."""
        found = pa.ipc.open_stream(bytes(values["Literal"]["Scalar"]["List"])).read_all().column(0).combine_chunks()
        if negated and found.null_count:
            return None
        return self.terms.among(of, found, negated=negated)

    def term(self, tree: Any) -> Term | None:
        """A column, a field of a struct column, or a constant."""
        names = _column(tree)
        if names is not None:
            return self.terms.column(*names)
        match tree:
            case {"Literal": {"Scalar": dict(scalar)}} if len(scalar) == 1:
                return _constant(*next(iter(scalar.items())))
        return None


def _column(tree: Any) -> tuple[str, ...] | None:
    match tree:
        case {"Column": str(name)}:
            return (name,)
        case {"Function": {"input": [of], "function": {"StructExpr": {"FieldByName": str(field)}}}}:
            names = _column(of)
            return None if names is None else (*names, field)
    return None


def _constant(kind: str, value: Any) -> Term | None:
    match kind, value:
        case _, int() if kind in _INTEGERS:
            return constant(value, LONG)
        case "Float64" | "Float32", float() | int():
            return constant(float(value), DOUBLE if kind == "Float64" else FLOAT)
        case "String", str():
            return constant(value, STRING)
        case "Boolean", bool():
            return constant(value, BOOLEAN)
        case "Binary", list():
            return constant(bytes(value), BINARY)
        case "Date", int():
            return constant(value, DATE)
        case "Datetime", [int(count), str(unit), zone] if unit in _MICROS:
            type_ = TIMESTAMP_NTZ if zone is None else TIMESTAMP
            return constant(count * _MICROS[unit], type_)
        case "Decimal", [int(unscaled), int(), int(scale)]:
            return constant(Decimal(unscaled).scaleb(-scale, _EXACT), decimal(38, scale))
    return None
