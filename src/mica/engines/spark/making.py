"""Catalyst's expressions and collections, made through py4j.

The rule: what is made here is plain: no name in it is left for Spark to resolve.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Maker:
    """Makes expressions in a session's JVM."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self.expressions = jvm.org.apache.spark.sql.catalyst.expressions
        self.plans = jvm.org.apache.spark.sql.catalyst.plans.logical
        self.types = jvm.org.apache.spark.sql.types
        self.none = jvm.scala.Option.empty()
        self.empty = self.seq([])

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala sequence."""
        return self._jvm.PythonUtils.toSeq(list(items))

    def rule(self, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """A Scala map, which is what `transform` takes: a tree's nodes equal to the first become the second."""
        found = self._jvm.java.util.HashMap()
        for old, new in pairs:
            found.put(old, new)
        return self._jvm.PythonUtils.toScalaMap(found)

    def attribute(self, name: str, ddl: str, *, nullable: bool = True) -> Any:
        """A column with an id of its own."""
        metadata = self.types.Metadata.empty()
        number = self.expressions.NamedExpression.newExprId()
        type_ = self.types.DataType.fromDDL(ddl)
        return self.expressions.AttributeReference(name, type_, nullable, metadata, number, self.empty)

    def alias(self, child: Any, name: str, number: Any) -> Any:
        """An expression under a name and an id."""
        return self.expressions.Alias(child, name, number, self.empty, self.none, self.empty)

    def all_of(self, conditions: list[Any]) -> Any:
        """Conditions joined by AND."""
        found = conditions[0]
        for other in conditions[1:]:
            found = self.expressions.And(found, other)
        return found

    def summed(self, column: Any) -> Any:
        """The sum of a BIGINT column, 0 of no rows."""
        total = self.expressions.aggregate.Sum(column).toAggregateExpression()
        zero = self.expressions.Literal.default(self.types.DataType.fromDDL("BIGINT"))
        return self.expressions.Coalesce(self.seq([total, zero]))
