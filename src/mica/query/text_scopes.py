"""Reads conditions and paths with sqlglot, as expressions over one table of a text.

The rule: only what the text says with certainty is read, of nodes whose every argument is known. A name is the table's
only where no other relation can have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from sqlglot import exp

from mica.query.pushed import Pushed
from mica.schema.literals import show
from mica.schema.spelling import spelled
from mica.schema.types import STRING, VARIANT, StructType

DIALECT = "databricks"
_COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TYPES: Mapping[Any, str] = {
    exp.DType.TEXT: "STRING",
    exp.DType.BOOLEAN: "BOOLEAN",
    exp.DType.TINYINT: "TINYINT",
    exp.DType.SMALLINT: "SMALLINT",
    exp.DType.INT: "INT",
    exp.DType.BIGINT: "BIGINT",
    exp.DType.FLOAT: "FLOAT",
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.DATE: "DATE",
}
_NAMED = re.compile(rf"({'|'.join(_TYPES.values())}|DECIMAL\(\d+, ?\d+\))", re.IGNORECASE)
#: What a key of a path may consist of, so that no text is read in two ways: `a.b` in backticks is two keys for Spark.
_KEY = re.compile(r"[\w $-]+")
#: What is read of an expression: one of which sqlglot says more (SYMMETRIC, a subquery, …) is not certain.
_READ = frozenset("this expression expressions low high to is_string table db catalog negate safe".split())


class Unknown(Exception):  # noqa: N818 - it ends the translation, and no user sees it
    """Ends the translation of what is not certain."""


class Scope:
    """The query right above one place of a table."""

    def __init__(self, table: exp.Table, alias: str, schema: StructType, certain: bool, *, cases: bool) -> None:
        self.alias, self.schema, self.certain, self.cases = alias, schema, certain, cases
        self.select = table.parent_select
        parent = table.parent
        joins = [] if self.select is None else self.select.args.get("joins") or []
        laterals = [] if self.select is None else self.select.args.get("laterals") or []
        plain = not any(table.args.get(name) for name in ("sample", "pivots", "joins", "laterals", "when", "changes"))
        direct = isinstance(parent, exp.From | exp.Join) and parent.parent is self.select
        #: Whether its rows are those of one FROM, whose conditions are about rows of the table.
        self.simple = self.select is not None and direct and plain and not self.select.args.get("sample")
        self.alone = not joins and not laterals
        self.kept = self.simple and _keeps(parent, joins)

    def owns(self, node: exp.Column) -> bool:
        """Whether a column is certainly the table's."""
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and self._same(parts[0], self.alias):
            return _only(node, self.alias.lower())
        return self.alone and node.find_ancestor(exp.Select) is self.select and self._has(parts[0])

    def _same(self, one: str, other: str) -> bool:
        """Whether the session takes two names for one."""
        return one == other or (not self.cases and one.lower() == other.lower())

    def _has(self, name: str) -> bool:
        found = self.schema.find(name)
        return found is not None and self._same(found.name, name)

    def conditions(self) -> Iterator[tuple[Pushed | None, str]]:
        """The conjuncts of the WHERE."""
        where = None if self.select is None else self.select.args.get("where")
        if not self.kept or where is None:
            return
        for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            shown = _shown(part)
            try:
                text = self.text(part)
            except Unknown:
                yield None, shown
            else:
                yield Pushed(text, strict(part)), shown

    # --- an expression in mica's words --------------------------------------------------------------------------------

    def text(self, node: exp.Expr) -> str:
        """Raises `Unknown` for what is not certain."""
        rule = self._rules.get(type(node))
        if rule is None or any(said for name, said in node.args.items() if name not in _READ):
            raise Unknown
        found = rule(self, node)
        return f"(NOT {found})" if node.args.get("negate") else found

    def _operand(self, node: exp.Expr) -> str:
        """A value. Spark binds predicates in another way (`a = b < c`, `a <=> b IN (c)`), and sqlglot puts parentheses
        of its own around some."""
        if isinstance(node.unnest(), exp.Predicate | exp.Not):
            raise Unknown
        return self.text(node)

    def _compared(self, node: exp.Binary) -> str:
        return f"({self._operand(node.this)} {_COMPARISONS[type(node)]} {self._operand(node.expression)})"

    def _column(self, node: exp.Column) -> str:
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and self._same(parts[0], self.alias):
            parts = parts[1:]
        elif not self.alone or node.find_ancestor(exp.Select) is not self.select:
            raise Unknown
        if not self._has(parts[0]):
            raise Unknown  # no column, or one of a query around this one
        return spelled(parts)

    def _literal(self, node: exp.Literal) -> str:
        value = str(node.this)
        if not node.is_string:
            if not re.fullmatch(r"\d+(\.\d+)?", value):
                raise Unknown
            return value
        if not self.certain or "'" in value:
            raise Unknown
        return show(value, STRING)

    def _negative(self, node: exp.Neg) -> str:
        if not isinstance(node.this, exp.Literal):
            raise Unknown
        return f"(- {self._literal(node.this)})"

    def _cast(self, node: exp.Cast) -> str:
        got = node.this
        type_ = type_of(node.to)
        if isinstance(got, exp.JSONExtract) and type_ is not None:
            return self._got(got.this, _path(got), type_, tries=isinstance(node, exp.TryCast))
        if isinstance(node, exp.TryCast) or not isinstance(got, exp.Literal):
            raise Unknown
        if type_ not in (("DATE",) if got.is_string else ("TINYINT", "SMALLINT", "BIGINT", "DOUBLE")):
            raise Unknown
        return f"CAST({self._literal(got)} AS {type_})"

    def _called(self, node: exp.Anonymous) -> str:
        name, arguments = str(node.this).lower(), node.expressions
        if name not in ("variant_get", "try_variant_get") or len(arguments) != 3:
            raise Unknown
        value, path, type_ = arguments
        if not all(isinstance(one, exp.Literal) and one.is_string for one in (path, type_)) or not self.certain:
            raise Unknown
        if not _NAMED.fullmatch(type_.this) or not re.fullmatch(r"\$(\.\w+|\[\d+\])*", path.this):
            raise Unknown
        return self._got(value, path.this, type_.this.upper(), tries=name.startswith("try_"))

    def _got(self, value: exp.Expr, path: str, type_: str, *, tries: bool) -> str:
        if not isinstance(value, exp.Column):
            raise Unknown
        column = self._column(value)
        if self.schema.find(value.name) is None or self.schema.field(value.name).type != VARIANT:
            raise Unknown
        return f"{'try_' if tries else ''}variant_get({column}, {show(path, STRING)}, '{type_}')"

    def _listed(self, node: exp.In) -> str:
        return f"({self._operand(node.this)} IN ({', '.join(map(self.text, node.expressions))}))"

    def _between(self, node: exp.Between) -> str:
        value, low, high = (self._operand(node.args[name]) for name in ("this", "low", "high"))
        return f"({value} BETWEEN {low} AND {high})"

    def _null(self, node: exp.Is) -> str:
        if not isinstance(node.expression, exp.Null):
            raise Unknown
        return f"({self._operand(node.this)} IS NULL)"

    def _like(self, node: exp.Like) -> str:
        if not isinstance(node.expression, exp.Literal) or not isinstance(
            node.this, exp.Column | exp.Cast | exp.Anonymous
        ):
            raise Unknown
        return f"({self.text(node.this)} LIKE {self.text(node.expression)})"

    _rules: ClassVar[Mapping[type[exp.Expr], Callable[[Scope, Any], str]]] = {
        **dict.fromkeys(_COMPARISONS, _compared),
        exp.And: lambda s, n: f"({s.text(n.this)} AND {s.text(n.expression)})",
        exp.Or: lambda s, n: f"({s.text(n.this)} OR {s.text(n.expression)})",
        exp.Not: lambda s, n: f"(NOT {s.text(n.this)})",
        exp.Paren: lambda s, n: s.text(n.this),
        exp.Neg: _negative,
        exp.Boolean: lambda _, n: "TRUE" if n.this else "FALSE",
        exp.Null: lambda _, __: "NULL",
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Cast: _cast,
        exp.TryCast: _cast,
        exp.Anonymous: _called,
        exp.In: _listed,
        exp.Between: _between,
        exp.Is: _null,
        exp.Like: _like,
    }


def _shown(node: exp.Expr) -> str:
    """The expression in a plan that people read."""
    try:
        return node.sql(DIALECT)
    except Exception:  # noqa: BLE001 - sqlglot cannot write each wrong text that it can read, as `regexp_replace(a, b)`
        return node.key


def _keeps(parent: exp.Expr | None, joins: list[exp.Join]) -> bool:
    """Whether a condition on the joined rows is one on the table's own: no join makes rows without one of it."""
    own = next((i for i, join in enumerate(joins) if join is parent), -1)
    if own >= 0 and (joins[own].side or joins[own].kind not in ("", "INNER", "CROSS") or joins[own].method):
        return False
    return not any(join.side in ("RIGHT", "FULL") or join.method for join in joins[own + 1 :])


def strict(node: exp.Expr) -> bool:
    """Whether it casts a path such that a value that cannot be cast is an error."""
    paths = (one for one in node.find_all(exp.Cast) if isinstance(one.this, exp.JSONExtract))
    casts = any(not isinstance(one, exp.TryCast) and one.to.this != exp.DType.TEXT for one in paths)
    calls = (one for one in node.find_all(exp.Anonymous) if str(one.this).lower() == "variant_get")
    return casts or any(one.expressions[-1].name.upper() != "STRING" for one in calls)


def type_of(kind: exp.DataType) -> str | None:
    """The type, if mica casts to it as Spark does."""
    if any(said for name, said in kind.args.items() if name not in ("this", "expressions")):
        return None  # a collation
    if kind.this == exp.DType.DECIMAL:
        sizes = [str(one.this.this) for one in kind.expressions]
        return f"DECIMAL({','.join(sizes)})" if len(sizes) == 2 else None
    return None if kind.expressions else _TYPES.get(kind.this)


def _path(got: exp.JSONExtract) -> str:
    """The path of `v:a.b[0]`."""
    parts = [] if not isinstance(got.expression, exp.JSONPath) else got.expression.expressions
    if not got.args.get("variant_extract") or not parts or not isinstance(parts[0], exp.JSONPathRoot):
        raise Unknown
    found = "$"
    for part in parts[1:]:
        if isinstance(part, exp.JSONPathKey) and isinstance(part.this, str) and _KEY.fullmatch(part.this):
            found += f"['{part.this}']"
        elif isinstance(part, exp.JSONPathSubscript) and isinstance(part.this, int) and part.this >= 0:
            found += f"[{part.this}]"
        else:
            raise Unknown
    return found


def _only(node: exp.Column, alias: str) -> bool:
    """Whether no other relation of the text is called so."""
    root = node.root()
    called = [table.alias_or_name.lower() for table in root.find_all(exp.Table)]
    called += [one.alias.lower() for one in root.find_all(exp.Subquery, exp.CTE, exp.Lateral)]
    return called.count(alias) == 1
