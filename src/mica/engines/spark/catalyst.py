"""Reads Spark's optimised plan of a text, and puts other relations in the places of its tables.

The rule: Catalyst alone decides what a text means. Each table is a relation without rows that Catalyst cannot fold away
(a `LogicalRDD`), in a clone of the session, so the user's session never sees it. What is replaced afterwards is the
relation, the conjuncts above it that the scan evaluates itself, and extractions from Variants (`variant_get`), which
become columns of the scan. All other nodes stay Catalyst's own.

Plans are read through py4j, which Spark Connect does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mica.engines.spark.types import to_spark
from mica.schema.ddl import quote_if_needed
from mica.schema.types import VARIANT, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Nodes whose columns are found by id. Below other nodes columns are found by position: all of them stay.
_BY_ID = frozenset(
    "Project Filter Join Sort Aggregate LocalLimit GlobalLimit Window Sample Repartition RepartitionByExpression "
    "WindowGroupLimit Offset RebalancePartitions ResolvedHint".split()
)
#: Expressions that evaluate a part of their children only for some rows.
_CONDITIONAL = frozenset("If CaseWhen Coalesce And Or NaNvl Nvl NullIf IfNull TryEval".split())
#: Types of extracted paths that the kernel and Spark share.
_EXTRACTED = re.compile(
    r"(STRING|BOOLEAN|TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DATE|TIMESTAMP|TIMESTAMP_NTZ|DECIMAL\(\d+,\d+\))"
)


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


@dataclass(frozen=True)
class Extraction:
    """A column of the scan that stands for an expression over a Variant column: its path as a type, or (without a path)
    whether it is null."""

    column: str
    path: str | None
    type: str
    strict: bool

    @property
    def sql(self) -> str:
        """The expression over the table's columns."""
        name = quote_if_needed(self.column)
        if self.path is None:
            return f"{name} IS NULL"
        path = self.path.replace("\\", "\\\\").replace("'", "\\'")
        return f"{'' if self.strict else 'try_'}variant_get({name}, '{path}', '{self.type}')"


@dataclass
class Relation:
    """One place of a table in a plan."""

    view: str
    node: Any
    #: Expression id → column, in the table's order.
    columns: dict[int, str]
    #: The conjuncts of the filter right above it, in Spark's order.
    conjuncts: list[Node] = field(default_factory=list)
    filter: _Plan | None = None
    expressions: list[Any] = field(default_factory=list)
    #: Which conjuncts the scan evaluates, so that Spark need not.
    dropped: frozenset[int] = frozenset()
    #: What Spark needs of it: plain columns, and extractions.
    needed: list[str] = field(default_factory=list)
    extractions: list[Extraction] = field(default_factory=list)


@dataclass
class _Plan:
    """A node of a logical plan."""

    java: Any
    name: str
    children: list[_Plan]
    subplans: list[tuple[Any, _Plan]]
    references: frozenset[int]


class Query:
    """A text's optimised plan, in which `tables` (name of a view → schema) are empty relations."""

    def __init__(self, spark: Any, text: str, tables: Mapping[str, StructType], args: Any = None) -> None:
        from pyspark import java_gateway

        self.spark = spark
        self._context = spark.sparkContext
        self._jvm = self._context._jvm  # noqa: SLF001
        started: Any = java_gateway.ensure_callback_server_started
        started(self._context._gateway)  # noqa: SLF001
        clone = self.spark._jsparkSession.cloneSession()  # noqa: SLF001
        # By the size of a relation that is not the scan's.
        clone.conf().set("spark.sql.optimizer.runtime.bloomFilter.enabled", "false")
        self._views: dict[int, str] = {}
        self._schemas = dict(tables)
        for view, schema in tables.items():
            empty = clone.createDataFrame(
                self._context._jsc.emptyRDD(),  # noqa: SLF001
                self._jvm.org.apache.spark.sql.types.DataType.fromJson(to_spark(schema).json()),
            )
            self._views[self._identity(empty.queryExecution().analyzed().rdd())] = view
            empty.createOrReplaceTempView(view)
        analysed = clone.sql(text, arguments(self.spark, args))
        self.names: list[str] = list(analysed.columns())
        optimised = analysed.queryExecution().optimizedPlan()
        self._relations: dict[tuple[int, ...], Relation] = {}
        self._subplans: dict[tuple[int, ...], _Plan] = {}
        self._root = self._read(optimised, None)
        self._carriers: dict[int, tuple[Relation, str]] = {}
        self._leaves: dict[tuple[int, Extraction], Any] = {}

    @property
    def relations(self) -> list[Relation]:
        """The places of the tables."""
        return list(self._relations.values())

    # --- reading -----------------------------------------------------------------------------------------------------

    def _identity(self, java: Any) -> int:
        return int(self._jvm.java.lang.System.identityHashCode(java))

    def _read(self, java: Any, above: Any) -> _Plan:
        name = str(java.nodeName())
        plan = _Plan(java, name, [], [], _ids(java.references()))
        if name == "LogicalRDD":
            self._relation(java, above)
            return plan
        plan.children += [self._read(child, plan) for child in _items(java.children())]
        for sub in _items(java.subqueries()):
            # Catalyst may put one subquery at several places.
            key = (self._identity(sub), *_ids_of(_items(sub.output())))
            if key not in self._subplans:
                self._subplans[key] = self._read(sub, None)
            plan.subplans.append((sub, self._subplans[key]))
        return plan

    def _relation(self, java: Any, above: _Plan | None) -> None:
        view = self._views.get(self._identity(java.rdd()))
        if view is None:
            return
        found = above if above is not None and above.name == "Filter" else None
        names = self._schemas[view].names
        ids = _ids_of(_items(java.output()))
        key = (self._identity(java), *ids)
        known = self._relations.get(key)
        if known is not None:
            # One node below different filters.
            known.conjuncts, known.expressions, known.filter = [], [], None
            return
        relation = Relation(view, java, dict(zip(ids, names, strict=True)), filter=found)
        self._relations[key] = relation
        if found is not None:
            relation.expressions = list(_conjuncts(found.java.condition()))
            relation.conjuncts = [self._node(e, relation) for e in relation.expressions]

    def _node(self, java: Any, relation: Relation) -> Node:
        """An expression over a relation's columns as plain data."""
        name = str(java.nodeName())
        if name == "AttributeReference":
            column = relation.columns.get(int(java.exprId().id()))
            return Node("Column" if column is not None else name, value=column, type=str(java.dataType().sql()))
        if name == "Literal":
            value = java.value()
            return Node(name, value=None if value is None else _plain(value), type=str(java.dataType().sql()))
        if name == "InSet":
            values = java.hset()
            texts = str(values.mkString("\x1f")).split("\x1f")
            known = len(texts) == int(values.size()) and not values.contains(None)
            child = self._node(java.child(), relation)
            return Node(name, (child,), tuple(texts) if known else None, str(java.child().dataType().sql()))
        children = tuple(self._node(child, relation) for child in _items(java.children()))
        if name == "VariantGet":
            return Node(name, children, type=str(java.dataType().sql()), strict=bool(java.failOnError()))
        if name == "Cast":
            return Node(name, children, type=str(java.dataType().sql()), strict=_strict(java))
        if name == "GetStructField":
            return Node(name, children, str(java.extractFieldName()), str(java.dataType().sql()))
        if name == "Like":
            return Node(name, children, str(java.escapeChar()))
        return Node(name, children)

    # --- what Spark needs --------------------------------------------------------------------------------------------

    def decide(self) -> None:
        """Sets what Spark needs of each relation, after `dropped` was set."""
        self._carriers = {}
        whole: set[int] = set()
        used: set[int] = set(_ids_of(_items(self._root.java.output())))
        for relation in self.relations:
            kinds = {f.name: f.type for f in self._schemas[relation.view].fields}
            for number, name in relation.columns.items():
                if kinds[name] == VARIANT:
                    self._carriers[number] = (relation, name)
        roots = {number: number for number in self._carriers}
        uses: dict[int, dict[Extraction, None]] = {}
        for plan in _every(self._root):
            self._uses(plan, roots, whole, used, uses)
        whole |= {roots[number] for number in used & roots.keys() if number in roots} & _outputs(self._root, roots)
        self._roots = roots
        self._whole = whole
        for relation in self.relations:
            relation.needed = [
                name
                for number, name in relation.columns.items()
                if number in whole or (number not in roots and number in used)
            ]
            extracted: dict[Extraction, None] = {}
            for number in relation.columns:
                if number in roots and number not in whole:
                    extracted |= uses.get(number, {})
            relation.extractions = list(extracted)

    def _uses(
        self,
        plan: _Plan,
        roots: dict[int, int],
        whole: set[int],
        used: set[int],
        uses: dict[int, dict[Extraction, None]],
    ) -> None:
        dropped = self._dropped(plan)
        if dropped is not None:
            expressions = [e for i, e in enumerate(dropped.expressions) if i not in dropped.dropped]
        elif plan.name not in _BY_ID and plan.children:
            passed = {number for child in plan.children for number in _ids_of(_items(child.java.output()))}
            used |= passed | plan.references
            whole |= {roots[number] for number in passed & roots.keys()}
            expressions = []
        else:
            expressions = list(_items(plan.java.expressions())) if plan.references & roots.keys() else []
            used |= plan.references
        for java in expressions:
            if dropped is not None:
                used |= _ids(java.references())
            renamed = _renamed(java) if plan.name == "Project" else None
            if renamed is not None and renamed[0] in roots:
                source, target = renamed
                roots[target] = roots[source]
                continue
            self._walk(java, roots, whole, uses, conditional=False)

    def _dropped(self, plan: _Plan) -> Relation | None:
        return next((r for r in self.relations if r.filter is plan), None) if plan.name == "Filter" else None

    def _walk(
        self,
        java: Any,
        roots: dict[int, int],
        whole: set[int],
        uses: dict[int, dict[Extraction, None]],
        *,
        conditional: bool,
    ) -> None:
        if not _ids(java.references()) & roots.keys():
            return
        found = self._extraction(java, roots)
        if found is not None:
            number, extraction = found
            if conditional and extraction.strict and extraction.type != "STRING":
                # Spark casts only where the condition asks for it.
                whole.add(number)
            uses.setdefault(number, {})[extraction] = None
            return
        if str(java.nodeName()) == "AttributeReference":
            whole.add(roots[int(java.exprId().id())])
            return
        within = conditional or str(java.nodeName()) in _CONDITIONAL
        for child in _items(java.children()):
            self._walk(child, roots, whole, uses, conditional=within)

    def _extraction(self, java: Any, roots: Mapping[int, int]) -> tuple[int, Extraction] | None:
        """What an expression extracts from a Variant column: the column's id at its relation, and the extraction."""
        name = str(java.nodeName())
        if name not in ("VariantGet", "Cast", "IsNull", "IsNotNull"):
            return None
        inner, strict, type_ = java, None, ""
        if name == "Cast":
            inner, strict = java.child(), _strict(java)
            if str(inner.nodeName()) != "VariantGet" or strict is None or str(inner.dataType().sql()) != "VARIANT":
                return None
            type_ = str(java.dataType().sql())
        child = inner.child()
        if str(child.nodeName()) != "AttributeReference" or int(child.exprId().id()) not in roots:
            return None
        root = roots[int(child.exprId().id())]
        _, column = self._carriers[root]
        if name in ("IsNull", "IsNotNull"):
            return root, Extraction(column, None, "BOOLEAN", strict=False)
        if name == "VariantGet":
            type_, strict = str(inner.dataType().sql()), bool(inner.failOnError())
        path = inner.path()
        if str(path.nodeName()) != "Literal" or path.value() is None or not _EXTRACTED.fullmatch(type_):
            return None
        return root, Extraction(column, str(path.value().toString()), type_, bool(strict))

    # --- replacing ---------------------------------------------------------------------------------------------------

    def with_scans(self, frames: Sequence[DataFrame]) -> DataFrame:
        """The query over these frames, one for each relation: its needed columns, then its extractions."""
        from pyspark.sql import DataFrame

        self._scans = {key: (r, f) for (key, r), f in zip(self._relations.items(), frames, strict=True)}
        self._rebuilt_subplans: dict[int, Any] = {}
        plan = self._rebuilt(self._root)
        plan.setAnalyzed()
        java = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.spark._jsparkSession, plan)  # noqa: SLF001
        frame = DataFrame(java, self.spark)
        return frame if frame.columns == self.names else frame.toDF(*self.names)

    def _rebuilt(self, plan: _Plan) -> Any:
        logical = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        if plan.name == "LogicalRDD":
            found = self._scans.get((self._identity(plan.java), *_ids_of(_items(plan.java.output()))))
            return plan.java if found is None else self._scan(*found)
        children = [self._rebuilt(child) for child in plan.children]
        java = plan.java
        if any(new is not old.java for new, old in zip(children, plan.children, strict=True)):
            java = java.withNewChildren(self._seq(children))
        subplans = {self._identity(old): self._rebuilt_subplan(sub) for old, sub in plan.subplans}
        relation = self._dropped(plan)
        if relation is not None and relation.dropped:
            kept = [e for i, e in enumerate(relation.expressions) if i not in relation.dropped]
            if not kept:
                return children[0]
            condition = kept[0]
            for other in kept[1:]:
                condition = self._jvm.org.apache.spark.sql.catalyst.expressions.And(condition, other)
            java = logical.Filter(condition, children[0])
        touched = plan.references & self._roots.keys() - {n for n, root in self._roots.items() if root in self._whole}
        rule = _Rule(lambda e: self._replaced(e, subplans)) if touched or subplans else None
        if rule is not None and plan.name == "Project" and touched:
            items: list[Any] = []
            for item in _items(java.projectList()):
                renamed = _renamed(item)
                root = None if renamed is None else self._roots.get(renamed[0])
                if renamed is None or root is None or root in self._whole:
                    items.append(item.transform(rule))
                else:
                    items += self._passed(renamed[0], renamed[1], root)
            return logical.Project(self._seq(items), children[0])
        return java if rule is None else java.transformExpressions(rule)

    def _rebuilt_subplan(self, plan: _Plan) -> Any:
        if id(plan) not in self._rebuilt_subplans:
            self._rebuilt_subplans[id(plan)] = self._rebuilt(plan)
        return self._rebuilt_subplans[id(plan)]

    def _replaced(self, java: Any, subplans: Mapping[int, Any]) -> Any:
        """What an expression becomes; None: what it is."""
        if subplans and _holds_plan(str(java.nodeName())):
            new = subplans.get(self._identity(java.plan()))
            if new is not None:
                return java.withNewPlan(new)
        found = self._extraction(java, self._roots)
        if found is None or found[0] in self._whole:
            return None
        return self._read_of(java, found[1])

    def _read_of(self, java: Any, extraction: Extraction) -> Any:
        inner = java.child() if str(java.nodeName()) == "Cast" else java
        attribute = self._leaf(int(inner.child().exprId().id()), extraction)
        if str(java.nodeName()) == "IsNotNull":
            return self._jvm.org.apache.spark.sql.catalyst.expressions.Not(attribute)
        return attribute

    def _leaf(self, carrier: int, extraction: Extraction) -> Any:
        """The attribute that stands for an extraction from a column of this id."""
        key = (carrier, extraction)
        if key not in self._leaves:
            expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
            types = self._jvm.org.apache.spark.sql.types
            self._leaves[key] = expressions.AttributeReference(
                extraction.sql,
                types.DataType.fromDDL(extraction.type),
                True,
                types.Metadata.empty(),
                expressions.NamedExpression.newExprId(),
                self._seq([]),
            )
        return self._leaves[key]

    def _passed(self, source: int, target: int, root: int) -> list[Any]:
        """The extractions of a column in a list of columns, under its old name or a new one."""
        relation, column = self._carriers[root]
        own = [e for e in relation.extractions if e.column == column]
        if source == target:
            return [self._leaf(source, e) for e in own]
        return [self._alias(self._leaf(source, e), e.sql, self._leaf(target, e).exprId()) for e in own]

    def _scan(self, relation: Relation, frame: DataFrame) -> Any:
        """A relation's scan, under the names and ids of the relation."""
        plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        columns = list(_items(plan.output()))
        own = {relation.columns[i]: a for i, a in zip(relation.columns, _items(relation.node.output()), strict=True)}
        numbers = {name: number for number, name in relation.columns.items()}
        items = [self._alias(c, n, own[n].exprId()) for c, n in zip(columns, relation.needed, strict=False)]
        for column, e in zip(columns[len(relation.needed) :], relation.extractions, strict=False):
            items.append(self._alias(column, e.sql, self._leaf(numbers[e.column], e).exprId()))
        return self._jvm.org.apache.spark.sql.catalyst.plans.logical.Project(self._seq(items), plan)

    def _alias(self, child: Any, name: str, number: Any) -> Any:
        none = self._jvm.scala.Option.empty()
        empty = self._seq([])
        return self._jvm.org.apache.spark.sql.catalyst.expressions.Alias(child, name, number, empty, none, empty)

    def _seq(self, items: Sequence[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(list(items))


def arguments(spark: Any, args: Any) -> Any:
    """The values of a text's parameters, as the JVM's `SparkSession.sql` takes them."""
    from pyspark.sql import functions

    lit: Any = functions.lit

    if isinstance(args, Mapping):
        return {name: lit(value)._jc for name, value in args.items()}  # noqa: SLF001
    values = [lit(value)._jc for value in args or ()]  # noqa: SLF001
    return spark.sparkContext._jvm.PythonUtils.toArray(values)  # noqa: SLF001


@dataclass(frozen=True)
class Parsed:
    """A text as Spark's parser reads it, before any name is resolved."""

    tree: str
    #: The names of its tables, in the text's spelling, parts joined by dots; those of CTEs too.
    names: list[str]


def relations(spark: SparkSession, text: str) -> Parsed:
    """The tables that a text names. Errors: Spark's own for a text that does not parse."""
    tree = str(_state(spark).sqlParser().parsePlan(text).treeString())
    found = re.findall(r"'UnresolvedRelation \[(.*?)\], \[", tree)
    return Parsed(tree, list(dict.fromkeys(name.replace(", ", ".") for name in found)))


def delta_location(spark: SparkSession, name: str) -> str | None:
    """The path of a Delta table of the session's catalog; None for anything else."""
    catalog = _state(spark).catalog()
    try:
        identifier = _state(spark).sqlParser().parseTableIdentifier(name)
        if catalog.isTempView(identifier) or not catalog.tableExists(identifier):
            return None
        found = catalog.getTableMetadata(identifier)
        if found.provider().isEmpty() or str(found.provider().get()).lower() not in ("delta", "mica"):
            return None
        return str(found.location().toString())
    except Exception:  # noqa: BLE001 - a name of another catalog: Spark reads it, or says what is wrong
        return None


def _state(spark: Any) -> Any:
    return spark._jsparkSession.sessionState()  # noqa: SLF001


class _Rule:
    """A Scala function of Python, for `transformExpressions`."""

    def __init__(self, of: Callable[[Any], Any]) -> None:
        self.of = of

    def applyOrElse(self, given: Any, default: Any) -> Any:  # noqa: ARG002, N802 - Scala's name
        found = self.of(given)
        return given if found is None else found

    def isDefinedAt(self, given: Any) -> bool:  # noqa: ARG002, N802
        return True

    class Java:
        implements = ("scala.PartialFunction",)


def _holds_plan(name: str) -> bool:
    """Whether an expression of this class holds a plan."""
    return name.endswith(("Subquery", "Exists", "ListQuery"))


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(i) for i in range(int(sequence.size())))


def _ids(attributes: Any) -> frozenset[int]:
    """The ids of a set of attributes; perhaps more, if names look like ids."""
    return frozenset(int(number) for number in re.findall(r"#(\d+)", str(attributes.toString())))


def _ids_of(attributes: Iterator[Any]) -> list[int]:
    return [int(attribute.exprId().id()) for attribute in attributes]


def _outputs(plan: _Plan, roots: Mapping[int, int]) -> set[int]:
    return {roots[number] for number in _ids_of(_items(plan.java.output())) if number in roots}


def _conjuncts(java: Any) -> Iterator[Any]:
    if str(java.nodeName()) == "And":
        yield from _conjuncts(java.left())
        yield from _conjuncts(java.right())
    else:
        yield java


def _every(plan: _Plan) -> Iterator[_Plan]:
    """All nodes, children first."""
    for child in plan.children:
        yield from _every(child)
    for _, sub in plan.subplans:
        yield from _every(sub)
    yield plan


def _renamed(java: Any) -> tuple[int, int] | None:
    """The old and the new id of a column that a list of columns only passes on."""
    name = str(java.nodeName())
    if name == "AttributeReference":
        number = int(java.exprId().id())
        return number, number
    if name == "Alias" and str(java.child().nodeName()) == "AttributeReference":
        return int(java.child().exprId().id()), int(java.exprId().id())
    return None


def _strict(cast: Any) -> bool | None:
    """Whether a failing cast is an error; None for casts without ANSI, which have other rules."""
    return {"ANSI": True, "TRY": False}.get(str(cast.evalMode().toString()))


def _plain(value: Any) -> str:
    """A value of the JVM, which py4j may have converted, as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value.toString() if hasattr(value, "toString") else value)
