"""Filters that Spark pushes into the source, as predicates of a scan.

The rule: this file knows the names of Spark's filters; which of them are certain, `readers.terms` says. Spark evaluates
all of them again, so a filter that is left out costs bytes and never rows.

Source: pyspark.sql.datasource.Filter.
"""

from __future__ import annotations

from typing import Any

from mica.expressions.tree import Expr, Op
from mica.readers.terms import Terms, negation, of_python

_COMPARED = {
    "EqualTo": Op.EQ, "EqualNullSafe": Op.SAFE_EQ, "GreaterThan": Op.GT, "GreaterThanOrEqual": Op.GE,
    "LessThan": Op.LT, "LessThanOrEqual": Op.LE,
}  # fmt: skip
_MATCHED = {"StringStartsWith": "startswith", "StringEndsWith": "endswith", "StringContains": "contains"}


def pushed(filter_: Any, terms: Terms) -> list[str]:
    """The texts of the conjuncts of a filter (`pyspark.sql.datasource.Filter`) that the scan can take."""
    return terms.conjuncts(_predicate(filter_, terms, negated=False))


def _predicate(filter_: Any, terms: Terms, *, negated: bool) -> Expr | None:
    kind = type(filter_).__name__
    if kind == "Not":
        return negation(_predicate(filter_.child, terms, negated=not negated))
    of = terms.column(*getattr(filter_, "attribute", ("",)))
    if kind in ("IsNull", "IsNotNull"):
        return terms.is_null(of, wanted=kind == "IsNull")
    if kind == "In":
        values = [of_python(one) for one in filter_.value]
        known = [one for one in values if one is not None]
        return terms.is_in(of, known, negated=negated) if len(known) == len(values) else None
    if kind in _MATCHED and isinstance(filter_.value, str):
        return terms.matches(_MATCHED[kind], of, filter_.value)
    if kind in _COMPARED:
        return terms.compare(_COMPARED[kind], of, of_python(filter_.value), negated=negated)
    return None
