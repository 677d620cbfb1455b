"""Reads with sqlglot what a text asks of its tables, where no plan of Spark's can be had (Spark Connect).

The rule: only what the text says with certainty is read: conditions of the WHERE right above a table, the columns that
any word of the text may name, and paths of a Variant that the text never needs whole. What no table of this file has is
left to Spark, which evaluates the whole text again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from mica.engines.spark.catalog import Parsed
from mica.query.pushed import Pushed
from mica.records import dataclass
from mica.schema.literals import show
from mica.schema.spelling import spelled
from mica.schema.types import STRING, VARIANT, StructType

_DIALECT = "databricks"
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
#: What a key of a path may consist of, so that no text is read in two ways.
_KEY = re.compile(r"[\w $.-]+")
#: What is read of an expression: one of which sqlglot says more (SYMMETRIC, a subquery, …) is not certain.
_READ = frozenset("this expression expressions low high to is_string table db catalog negate safe".split())
#: Expressions that evaluate a part of them only for some rows.
_CONDITIONAL = (exp.If, exp.Case, exp.Coalesce, exp.And, exp.Or, exp.Nullif, exp.Filter, exp.Anonymous)


@dataclass(frozen=True)
class TextPath:
    """A path of a Variant as a type, at one place of the text."""

    column: str
    #: The expression over the table, and its type.
    sql: str
    type: str
    #: Whether a value that cannot be cast is an error, and whether Spark casts only some rows.
    strict: bool
    conditional: bool
    start: int
    end: int


@dataclass
class TextPlace:
    """One place of a table in a text."""

    view: str
    #: Where its name is, and whether the text gives it another one.
    start: int
    end: int
    aliased: bool
    #: Whether it is not joined.
    alone: bool = False
    conditions: list[tuple[Pushed | None, str]] = field(default_factory=list)
    #: The columns that the text may need, as they are; None: all.
    columns: list[str] | None = None
    paths: list[TextPath] = field(default_factory=list)


@dataclass
class TextAsks:
    """A text, and what it asks of its tables."""

    places: list[TextPlace]
    #: Whether columns of the result are called by expressions that paths are a part of.
    unnamed: bool = False


class _Unknown(Exception):  # noqa: N818 - it ends the translation, and no caller sees it
    pass


def read(text: str, tables: Mapping[str, StructType]) -> TextAsks | None:
    """What a text asks of `tables` (name of a view → schema); None if sqlglot cannot read it."""
    found = _parsed(text)
    return None if found is None else _Reader(text, *found, {name.lower(): name for name in tables}, tables).read()


def relations(text: str) -> Parsed | None:
    """The tables that a text names, but not its CTEs; None if sqlglot cannot read it."""
    found = _parsed(text)
    if found is None or any(token.token_type == TokenType.TABLE for token in found[1]):
        return None  # `TABLE t` reads as a column
    tree = found[0]
    named = dict[str, bool]()
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not _is_cte(table):
            name = ".".join(part.name for part in table.parts)
            named[name] = named.get(name, False) or bool(table.args.get("version"))
    travelled = frozenset(name for name, travels in named.items() if travels)
    return Parsed(list(named), travelled, tree.find(exp.DML) is not None)


def _is_cte(table: exp.Table) -> bool:
    """Whether the name is one of a CTE: of a WITH around it, and before the CTE that it stands in itself."""
    if len(table.parts) > 1:
        return False
    name = table.name.lower()
    below: exp.Expr = table
    while (above := below.parent) is not None:
        ctes = list((above if isinstance(above, exp.With) else above.args.get("with_") or exp.With()).expressions)
        inside = next((at for at, cte in enumerate(ctes) if cte is below), None)
        if inside is not None and not above.args.get("recursive"):
            ctes = ctes[:inside]
        if above.args.get("with_") is not below and any(cte.alias.lower() == name for cte in ctes):
            return True
        below = above
    return False


def _parsed(text: str) -> tuple[Any, list[Any]] | None:
    try:
        (tree,) = sqlglot.parse(text, read=_DIALECT)
        tokens = sqlglot.tokenize(text, read=_DIALECT)
    except (SqlglotError, ValueError, RecursionError, AttributeError):
        return None  # `SELECT 1 |> LIMIT 1` is an AttributeError
    return None if tree is None else (tree, tokens)


class _Reader:
    def __init__(
        self, text: str, tree: Any, tokens: list[Any], names: Mapping[str, str], tables: Mapping[str, StructType]
    ) -> None:
        self.text, self.tree, self.tokens, self.names, self.tables = text, tree, tokens, names, tables
        # Strings with escapes, and names or strings in double quotes, are read in several ways.
        self.certain = "\\" not in text and '"' not in text
        self.scopes: list[_Scope] = []

    def read(self) -> TextAsks | None:
        shadowed = {cte.alias.lower() for cte in self.tree.find_all(exp.CTE)}
        found = TextAsks([])
        if any(token.token_type == TokenType.PIPE_GT for token in self.tokens):
            return None  # sqlglot makes one query of the steps, where LIMIT and what is selected come after WHERE
        if any(self._is_whole(first, second) for first, second in pairwise(self.tokens)):
            return None  # `TABLE t` reads as a column or table of the name `TABLE`, with the alias `t`
        for table in self.tree.find_all(exp.Table):
            name = table.name.lower()
            if name not in self.names or table.args.get("db") is not None:
                continue
            position = table.this.meta
            alias = table.args.get("alias")
            other = table.args.get("version") or table.args.get("sample") or (alias is not None and alias.columns)
            if name in shadowed or "start" not in position or other:
                return None  # the name may be another one's, or its columns have other names
            schema = self.tables[self.names[name]]
            place = TextPlace(self.names[name], position["start"], position["end"], alias is not None)
            found.places.append(place)
            self.scopes.append(_Scope(table, (alias or table).name.lower(), schema, self.certain))
            place.conditions = list(self.scopes[-1].conditions())
            place.alone = self.scopes[-1].alone
            place.columns = self._mentioned(schema)
        for place, scope in zip(found.places, self.scopes, strict=True):
            if place.columns is None or not scope.simple or not self.certain:
                continue
            for name in [name for name in place.columns if scope.schema.field(name).type == VARIANT]:
                paths, unnamed = self._paths(scope, name)
                if paths:
                    place.columns.remove(name)
                    place.paths += paths
                    found.unnamed |= unnamed
        return found

    def _is_whole(self, first: Any, second: Any) -> bool:
        return bool(first.token_type == TokenType.TABLE and second.text.lower() in self.names)

    def _mentioned(self, schema: StructType) -> list[str] | None:
        """The columns that a word of the text may name."""
        counted = {id(count.this) for count in self.tree.find_all(exp.Count)}
        stars = any(id(star) not in counted for star in self.tree.find_all(exp.Star))
        natural = any(join.args.get("method") for join in self.tree.find_all(exp.Join))
        words = {token.text.lower() for token in self.tokens}
        if stars or natural or self.tree.find(exp.Pivot) or words & {"identifier", "table", "transform"}:
            return None
        if any(not select.expressions for select in self.tree.find_all(exp.Select)):
            return None
        return [name for name in schema.names if name.lower() in words]

    def _paths(self, scope: _Scope, column: str) -> tuple[list[TextPath], bool]:
        """The paths of a Variant, if the text needs nothing else of it."""
        found: list[TextPath] = []
        unnamed, uses = False, 0
        for node in self.tree.find_all(exp.Column):
            if column.lower() not in [part.name.lower() for part in node.parts]:
                continue
            uses += 1
            owners = [one for one in self.scopes if one.owns(node)]
            if len(owners) == 1 and owners[0] is not scope:
                continue
            if not owners or node.name.lower() != column.lower():
                return [], False
            whole = _extraction(node)
            path = None if whole is None else self._span(scope, whole, node, column)
            if whole is None or path is None:
                return [], False
            item = _item(whole)
            if item is not None and not isinstance(item, exp.Alias):
                if item.parent is not self.tree:
                    return [], False
                unnamed = True
            found.append(path)
        words = sum(token.text.lower() == column.lower() for token in self.tokens)
        return (found, unnamed) if uses == words else ([], False)

    def _span(self, scope: _Scope, whole: exp.Expr, node: exp.Column, column: str) -> TextPath | None:
        """Where an expression is in the text; None if that is not certain."""
        try:
            sql = scope.text(whole)
        except _Unknown:
            return None
        type_ = _type(whole.to) if isinstance(whole, exp.Cast) else whole.expressions[-1].name.upper()
        first = node.parts[0].meta.get("start")
        at = next((i for i, token in enumerate(self.tokens) if token.start == first), None)
        if at is None or type_ is None:
            return None
        begins = at
        if at >= 2 and self.tokens[at - 1].text == "(" and not isinstance(whole, exp.Paren):
            begins = at - 2 if self.tokens[at - 2].text.lower().endswith(("cast", "variant_get")) else at
        for end in range(at, min(at + 60, len(self.tokens))):
            start, stop = self.tokens[begins].start, self.tokens[end].end
            try:
                again = sqlglot.parse_one(self.text[start : stop + 1], read=_DIALECT)
            except SqlglotError:
                continue
            open_ = sum({"(": 1, ")": -1}.get(token.text, 0) for token in self.tokens[begins : end + 1])
            if again == whole and not open_ and not self._goes_on(end):
                conditional = any(isinstance(above, _CONDITIONAL) for above in _above(whole))
                return TextPath(column, sql, type_, _strict(whole), conditional, start, stop)
        return None

    def _goes_on(self, end: int) -> bool:
        """Whether the token after belongs to the expression still, as in `DECIMAL(10, 2)`."""
        after = self.tokens[end + 1].text if end + 1 < len(self.tokens) else ""
        return after in ("(", ".", "[", ":", "::")


class _Scope:
    """The query right above one place of a table."""

    def __init__(self, table: exp.Table, alias: str, schema: StructType, certain: bool) -> None:
        self.alias, self.schema, self.certain = alias, schema, certain
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
        parts = [part.name.lower() for part in node.parts]
        if len(parts) > 1 and parts[0] == self.alias:
            return _only(node, self.alias)
        own = self.alone and node.find_ancestor(exp.Select) is self.select
        return own and self.schema.find(parts[0]) is not None

    def conditions(self) -> Iterator[tuple[Pushed | None, str]]:
        """The conjuncts of the WHERE."""
        where = None if self.select is None else self.select.args.get("where")
        if not self.kept or where is None:
            return
        for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            shown = part.sql(_DIALECT)
            try:
                text = self.text(part)
            except _Unknown:
                yield None, shown
            else:
                yield Pushed(text, _strict(part)), shown

    # --- an expression in mica's words --------------------------------------------------------------------------------

    def text(self, node: exp.Expr) -> str:
        """Raises `_Unknown` for what is not certain."""
        rule = _RULES.get(type(node))
        if rule is None or any(said for name, said in node.args.items() if name not in _READ):
            raise _Unknown
        found = rule(self, node)
        return f"(NOT {found})" if node.args.get("negate") else found

    def operand(self, node: exp.Expr) -> str:
        """A value. Spark binds predicates in another way (`a = b < c`, `a <=> b IN (c)`), and sqlglot puts parentheses
        of its own around some."""
        if isinstance(node.unnest(), exp.Predicate | exp.Not):
            raise _Unknown
        return self.text(node)

    def compared(self, node: exp.Binary) -> str:
        return f"({self.operand(node.this)} {_COMPARISONS[type(node)]} {self.operand(node.expression)})"

    def column(self, node: exp.Column) -> str:
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and parts[0].lower() == self.alias:
            parts = parts[1:]
        elif not self.alone or node.find_ancestor(exp.Select) is not self.select:
            raise _Unknown
        if self.schema.find(parts[0]) is None:
            raise _Unknown
        return spelled(parts)

    def literal(self, node: exp.Literal) -> str:
        value = str(node.this)
        if not node.is_string:
            if not re.fullmatch(r"\d+(\.\d+)?", value):
                raise _Unknown
            return value
        if not self.certain or "'" in value:
            raise _Unknown
        return show(value, STRING)

    def negative(self, node: exp.Neg) -> str:
        if not isinstance(node.this, exp.Literal):
            raise _Unknown
        return f"(- {self.literal(node.this)})"

    def cast(self, node: exp.Cast) -> str:
        got = node.this
        type_ = _type(node.to)
        if isinstance(got, exp.JSONExtract) and type_ is not None:
            return self.got(got.this, _path(got), type_, tries=isinstance(node, exp.TryCast))
        if isinstance(node, exp.TryCast) or not isinstance(got, exp.Literal):
            raise _Unknown
        if type_ not in (("DATE",) if got.is_string else ("TINYINT", "SMALLINT", "BIGINT", "DOUBLE")):
            raise _Unknown
        return f"CAST({self.literal(got)} AS {type_})"

    def called(self, node: exp.Anonymous) -> str:
        name, arguments = str(node.this).lower(), node.expressions
        if name not in ("variant_get", "try_variant_get") or len(arguments) != 3:
            raise _Unknown
        value, path, type_ = arguments
        if not all(isinstance(one, exp.Literal) and one.is_string for one in (path, type_)) or not self.certain:
            raise _Unknown
        if not _NAMED.fullmatch(type_.this) or not re.fullmatch(r"\$(\.\w+|\[\d+\])*", path.this):
            raise _Unknown
        return self.got(value, path.this, type_.this.upper(), tries=name.startswith("try_"))

    def got(self, value: exp.Expr, path: str, type_: str, *, tries: bool) -> str:
        if not isinstance(value, exp.Column):
            raise _Unknown
        column = self.column(value)
        if self.schema.find(value.name) is None or self.schema.field(value.name).type != VARIANT:
            raise _Unknown
        return f"{'try_' if tries else ''}variant_get({column}, {show(path, STRING)}, '{type_}')"

    def listed(self, node: exp.In) -> str:
        return f"({self.operand(node.this)} IN ({', '.join(map(self.text, node.expressions))}))"

    def between(self, node: exp.Between) -> str:
        value, low, high = (self.operand(node.args[name]) for name in ("this", "low", "high"))
        return f"({value} BETWEEN {low} AND {high})"

    def null(self, node: exp.Is) -> str:
        if not isinstance(node.expression, exp.Null):
            raise _Unknown
        return f"({self.operand(node.this)} IS NULL)"

    def like(self, node: exp.Like) -> str:
        if not isinstance(node.expression, exp.Literal) or not isinstance(
            node.this, exp.Column | exp.Cast | exp.Anonymous
        ):
            raise _Unknown
        return f"({self.text(node.this)} LIKE {self.text(node.expression)})"


_RULES: Mapping[type[exp.Expr], Callable[[_Scope, Any], str]] = {
    **dict.fromkeys(_COMPARISONS, _Scope.compared),
    exp.And: lambda s, n: f"({s.text(n.this)} AND {s.text(n.expression)})",
    exp.Or: lambda s, n: f"({s.text(n.this)} OR {s.text(n.expression)})",
    exp.Not: lambda s, n: f"(NOT {s.text(n.this)})",
    exp.Paren: lambda s, n: s.text(n.this),
    exp.Neg: _Scope.negative,
    exp.Boolean: lambda _, n: "TRUE" if n.this else "FALSE",
    exp.Null: lambda _, __: "NULL",
    exp.Column: _Scope.column,
    exp.Literal: _Scope.literal,
    exp.Cast: _Scope.cast,
    exp.TryCast: _Scope.cast,
    exp.Anonymous: _Scope.called,
    exp.In: _Scope.listed,
    exp.Between: _Scope.between,
    exp.Is: _Scope.null,
    exp.Like: _Scope.like,
}


def _keeps(parent: exp.Expr | None, joins: list[exp.Join]) -> bool:
    """Whether a condition on the joined rows is one on the table's own: no join makes rows without one of it."""
    own = next((i for i, join in enumerate(joins) if join is parent), -1)
    if own >= 0 and (joins[own].side or joins[own].kind not in ("", "INNER", "CROSS") or joins[own].method):
        return False
    return not any(join.side in ("RIGHT", "FULL") or join.method for join in joins[own + 1 :])


def _strict(node: exp.Expr) -> bool:
    """Whether it casts a path such that a value that cannot be cast is an error."""
    paths = (one for one in node.find_all(exp.Cast) if isinstance(one.this, exp.JSONExtract))
    casts = any(not isinstance(one, exp.TryCast) and one.to.this != exp.DType.TEXT for one in paths)
    calls = (one for one in node.find_all(exp.Anonymous) if str(one.this).lower() == "variant_get")
    return casts or any(one.expressions[-1].name.upper() != "STRING" for one in calls)


def _type(kind: exp.DataType) -> str | None:
    if kind.this == exp.DType.DECIMAL:
        sizes = [str(one.this.this) for one in kind.expressions]
        return f"DECIMAL({','.join(sizes)})" if len(sizes) == 2 else None
    return None if kind.expressions else _TYPES.get(kind.this)


def _path(got: exp.JSONExtract) -> str:
    """The path of `v:a.b[0]`."""
    parts = [] if not isinstance(got.expression, exp.JSONPath) else got.expression.expressions
    if not got.args.get("variant_extract") or not parts or not isinstance(parts[0], exp.JSONPathRoot):
        raise _Unknown
    found = "$"
    for part in parts[1:]:
        if isinstance(part, exp.JSONPathKey) and isinstance(part.this, str) and _KEY.fullmatch(part.this):
            found += f"['{part.this}']"
        elif isinstance(part, exp.JSONPathSubscript) and isinstance(part.this, int) and part.this >= 0:
            found += f"[{part.this}]"
        else:
            raise _Unknown
    return found


def _extraction(column: exp.Column) -> exp.Expr | None:
    """The expression that takes a path out of a column; None if there is none."""
    above = column.parent
    if isinstance(above, exp.JSONExtract) and isinstance(above.parent, exp.Cast) and above.this is column:
        return above.parent
    if isinstance(above, exp.Anonymous) and str(above.this).lower() in ("variant_get", "try_variant_get"):
        return above
    return None


def _above(node: exp.Expr) -> Iterable[exp.Expr]:
    """What an expression is a part of, within its query."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Select):
        yield above
        above = above.parent


def _item(node: exp.Expr) -> exp.Expr | None:
    """The item of a list of columns that an expression is a part of."""
    for above in (node, *_above(node)):
        if isinstance(above.parent, exp.Select) and above.arg_key == "expressions":
            return above
    return None


def _only(node: exp.Column, alias: str) -> bool:
    """Whether no other relation of the text is called so."""
    root = node.root()
    called = [table.alias_or_name.lower() for table in root.find_all(exp.Table)]
    called += [one.alias.lower() for one in root.find_all(exp.Subquery, exp.CTE, exp.Lateral)]
    return called.count(alias) == 1
