"""Catalyst's expressions and collections, made through py4j.

The rule: what is made here is plain: no name in it is left for Spark to resolve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from mica.engines.spark.at_once import answers_at_once
from mica.engines.spark.java import java_class
from mica.engines.spark.nodes import items
from mica.engines.spark.types import type_text

#: Where a CTE has its plan, and its name its columns.
_PLAN_OF_CTE, _OUTPUT_OF_CTE = 0, 2


class Maker:
    """Makes expressions in a session's JVM. Each name that py4j looks up is a call, so classes and their
    functions are looked up once."""

    def __init__(self, spark: Any) -> None:
        def java(name: str) -> Any:
            return java_class(spark, name)

        def catalyst(name: str) -> Any:
            return java(f"org.apache.spark.sql.catalyst.{name}")

        utils, self._map = java("org.apache.spark.api.python.PythonUtils"), java("java.util.HashMap")
        self._to_seq, self._to_map = utils.toSeq, utils.toScalaMap
        self.attribute_reference = catalyst("expressions.AttributeReference")
        self._alias, self._and, self._named = (
            catalyst("expressions.Alias"),
            catalyst("expressions.And"),
            catalyst("expressions.NamedExpression"),
        )
        self._sum, self._coalesce, self._literal = (
            catalyst("expressions.aggregate.Sum"),
            catalyst("expressions.Coalesce"),
            catalyst("expressions.Literal"),
        )
        self._if, self._is_not_null, self._raise, self._create_map = (
            catalyst("expressions.If"),
            catalyst("expressions.IsNotNull"),
            catalyst("expressions.RaiseError"),
            catalyst("expressions.CreateMap"),
        )
        self._field, self._file_name, self._replaced = (
            catalyst("expressions.GetStructField"),
            catalyst("expressions.InputFileName"),
            catalyst("expressions.RegExpReplace"),
        )
        self.negated = catalyst("expressions.Not")
        self.project, self.filter = catalyst("plans.logical.Project"), catalyst("plans.logical.Filter")
        self._named_rows, self._identifier = catalyst("plans.logical.SubqueryAlias"), catalyst("AliasIdentifier")
        self._generated = catalyst("plans.logical.Generate")
        self._repartition, self._limited = catalyst("plans.logical.Repartition"), catalyst("plans.logical.GlobalLimit")
        self.type = java("org.apache.spark.sql.types.DataType")
        self._int = self.type.fromDDL("INT")
        self._nothing = java("org.apache.spark.sql.types.Metadata").empty()
        self._metadata = java("org.apache.spark.sql.types.MetadataBuilder")
        self.of_rows = java("org.apache.spark.sql.classic.Dataset").ofRows
        self._nodes_of_names = catalyst("analysis.EliminateSubqueryAliases"), catalyst("analysis.EliminateView")
        self.current_like = catalyst("trees.TreePattern").CURRENT_LIKE()
        self.outer = catalyst("trees.TreePattern").OUTER_REFERENCE()
        self.identity = java("java.lang.System").identityHashCode
        self._none, self._some = java("scala.Option").empty(), java("scala.Some")
        self._view, self._table_name = catalyst("catalog.TemporaryViewRelation"), catalyst("TableIdentifier")
        #: One row without columns, of which Spark makes rows of literals: joined by NOT IN, a row of its own is lost.
        row = self.seq([catalyst("InternalRow").empty()])
        self.one_row = catalyst("plans.logical.LocalRelation")(self.seq([]), row, False, self._none)
        self._empty = self.seq([])
        inlined = catalyst("optimizer.InlineCTE")
        (constructor,) = java("java.lang.Class").forName(inlined._fqn).getConstructors()  # noqa: SLF001
        defaults = (f"apply$default${i + 1}" for i in range(int(constructor.getParameterCount())))
        self._with_cte = catalyst("plans.logical.WithCTE")
        self._inlined = inlined(*(getattr(inlined, default)() for default in defaults))
        text = "WITH t AS (SELECT 1 AS a) SELECT a FROM t"
        found = spark._jsparkSession.sql(text).queryExecution().analyzed()  # noqa: SLF001
        self._rows_of_cte, self._named_cte = found.cteDefs().head(), found.collectLeaves().last()
        #: Their parts: how many there are is another number in each version of Spark, as of the rule's settings.
        self._cte = [
            [one.productElement(i) for i in range(int(one.productArity()))]
            for one in (self._named_cte, self._rows_of_cte)
        ]

    @staticmethod
    def of(spark: Any) -> Maker:
        """The one of a session, which this thread is about to ask much."""
        answers_at_once(spark)
        if spark not in _MAKERS:
            _MAKERS[spark] = Maker(spark)
        return _MAKERS[spark]

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala sequence."""
        return self._to_seq(list(items))

    def rule(self, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """A Scala map, which is what `transform` takes: a tree's nodes equal to the first become the second."""
        found = self._map()
        for old, new in pairs:
            found.put(old, new)
        return self._to_map(found)

    def attribute(self, name: str, ddl: str, *, nullable: bool = True) -> Any:
        """A column with an id of its own, of a type as Catalyst spells it."""
        number = self._named.newExprId()
        type_ = self.type.fromDDL(type_text(ddl))
        return self.attribute_reference(name, type_, nullable, self._nothing, number, self._empty)

    def alias(self, child: Any, name: str, number: Any) -> Any:
        """An expression under a name and an id."""
        return self._alias(child, name, number, self._empty, self._none, self._empty)

    def renumbered(self, plan: Any, output: Any, *, first: bool = False) -> Any:
        """The rows of a plan in the columns of another one; `first`: the plan may have more after them. Each alias that
        is made from here is many calls, so a thousand columns took a second: Catalyst makes all of them where it puts a
        CTE in the place of its name. Raises ValueError if they are not as many."""
        given, wanted = int(plan.output().size()), int(output.size())
        if given < wanted or (given > wanted and not first):
            raise ValueError(f"{wanted} columns of a plan with {given}")
        own, rows = map(list, self._cte)  # another thread makes its own of them
        own[_OUTPUT_OF_CTE], rows[_PLAN_OF_CTE] = output, plan
        both = self._named_cte.copy(*own), self.seq([self._rows_of_cte.copy(*rows)])
        return self._inlined.apply(self._with_cte(*both))

    def named(self, plan: Any, name: Sequence[str]) -> Any:
        """The rows of a plan under a name of one or more parts."""
        *qualifier, last = name
        return self._named_rows(self._identifier(last, self.seq(qualifier)), plan)

    def anew(self, view: Any) -> Any:
        """A temporary view of the same rows, whose columns have other ids."""
        return self._view(view.tableMeta(), self._some(view.plan().get().newInstance()))

    def some(self, value: Any) -> Any:
        """A value that may be missing, and is not."""
        return self._some(value)

    def text_view(self, entry: Any, name: str, text: str, properties: Mapping[str, str | None]) -> Any:
        """A temporary view that Spark reads as the stored one of a catalog's entry, but for its text and these
        properties; None takes one away."""
        known = entry.properties()
        for key, value in properties.items():
            known = known.removed(key) if value is None else known.updated(key, value)
        made = copied(entry, identifier=self._table_name(name), viewText=self._some(text), properties=known)
        return self._view(made, self._none)

    def with_output(self, relation: Any, output: Any) -> Any:
        """A relation of rows (`LogicalRDD`) under other columns of the same types. How many parts it has is another
        number in each version of Spark."""
        parts = [relation.productElement(i) for i in range(1, int(relation.productArity()))]
        return relation.copy(output, *parts, *items(relation.otherCopyArgs()))

    def in_one(self, plan: Any) -> Any:
        """The rows of a plan in one partition: what groups or sorts few rows there needs no shuffle."""
        return self._repartition(1, False, plan)

    def apart(self, generate: Any) -> Any:
        """A node that gives columns for each row, whose columns have ids of their own first, and then those that they
        had: of EXCEPT ALL and INTERSECT ALL Catalyst gives them the ids of columns below, which it takes for constants
        of a plan that it optimises again."""
        given = generate.generatorOutput()
        own = [one.newInstance() for one in items(given)]
        parts = generate.unrequiredChildIndex(), generate.outer(), generate.qualifier(), self.seq(own), generate.child()
        named = [self.alias(new, one.name(), one.exprId()) for new, one in zip(own, items(given), strict=True)]
        kept = generate.requiredChildOutput()
        return self.project(kept.appendedAll(self.seq(named)), self._generated(generate.generator(), *parts))

    def unfolded(self, plan: Any) -> Any:
        """Rows of the driver, of which Catalyst computes nothing before it has moved filters and left out columns. Of a
        bare local relation it takes each projection at once, for all rows. A limit that cuts nothing goes later."""
        most = plan.maxRows()
        return self._limited(self._literal(most.get(), self._int), plan) if most.isDefined() else plan

    def without_names(self, plan: Any) -> Any:
        """An analysed plan without the nodes that only gave names to what is below them."""
        for rule in self._nodes_of_names:
            plan = rule.apply(plan)
        return plan

    def all_of(self, conditions: list[Any]) -> Any:
        """Conditions joined by AND."""
        found = conditions[0]
        for other in conditions[1:]:
            found = self._and(found, other)
        return found

    def checked(self, column: Any, failing: Any, type_: str) -> Any:
        """A column of casts, with Spark's error where there is a text that cannot be cast."""
        named = {"value": failing, "dataType": self._text(f'"{type_}"')}
        parameters = self._create_map(
            self.seq([one for name, value in named.items() for one in (self._text(name), value)]), True
        )
        error = self._raise(self._text("INVALID_VARIANT_CAST"), parameters, column.dataType())
        return self._if(self._is_not_null(failing), error, column)

    def hiding(self, plan: Any, name: str, type_: Any, why: str) -> Any:
        """The rows of a plan, with a hidden column beside theirs, as files have `_metadata`: no star means it, and who
        asks for it by its name gets an error that says why, unless other rows come in the place of these."""
        told = self._create_map(self.seq([self._text("errorMessage"), self._text(why)]), True)
        value = self._raise(self._text("USER_RAISED_EXCEPTION"), told, type_)
        is_hidden = self._some(self._metadata().putString("__metadata_col", name).build())
        column = self._alias(value, name, self._named.newExprId(), self._empty, is_hidden, self._empty)
        own = plan.output()
        found = self.project(own, self.project(own.appended(column), plan))
        found.setTagValue(self.project.hiddenOutputTag(), self.seq([column.toAttribute()]))
        return found

    def name_of_file(self, hidden: Any) -> tuple[Any, Any]:
        """`input_file_name()`, and the same of files' `_metadata`, as Spark spells it: `file:///a` for `file:/a`."""
        field = self._field(hidden, 0, self._some("file_path"))
        texts = self._text("^file:/(?!/)"), self._text("file:///")
        return self._file_name(), self._replaced(field, *texts, self._literal.create(1, self._int))

    def _text(self, value: str) -> Any:
        return self._literal.create(value, self.type.fromDDL("STRING"))

    def summed(self, column: Any) -> Any:
        """The sum of a BIGINT column, 0 of no rows."""
        total = self._sum(column).toAggregateExpression()
        return self._coalesce(self.seq([total, self._literal.default(self.type.fromDDL("BIGINT"))]))


def copied(made: Any, **changes: Any) -> Any:
    """A node, or another case class of Scala's, with other parts of these names. How many it has is another number in
    each version of Spark."""
    names = [str(made.productElementName(i)) for i in range(int(made.productArity()))]
    return made.copy(*(changes[name] if name in changes else made.productElement(i) for i, name in enumerate(names)))


_MAKERS: WeakKeyDictionary[Any, Maker] = WeakKeyDictionary()
