"""Reads with sqlglot what a text asks of its tables, where no plan of Spark's can be had (Spark Connect).

The rule: only what the text says with certainty is read: conditions of the WHERE right above a table, the columns that
any word of the text may name, and paths of a Variant that the text never needs whole. What no table of this file has is
left to Spark, which evaluates the whole text again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from mica.engines.spark.catalog import Parsed
from mica.errors import UserError
from mica.expressions.parse import parse
from mica.query.pushed import Pushed
from mica.query.text_scopes import DIALECT, Scope, Unknown, strict, type_of
from mica.records import dataclass
from mica.schema.lexical import COMMENT, QUOTED_NAME, QUOTED_STRING, RAW_STRING, REST
from mica.schema.types import VARIANT, StructType

_PARTS = re.compile(rf"(?P<kept>{RAW_STRING}|{QUOTED_STRING}|{QUOTED_NAME}|{REST})|{COMMENT}")
#: Expressions that evaluate what they have first for every row, and the others that evaluate all they have. Of other
#: ones that is not certain: what has an operand without a value does not ask for the next one, `/` and `%` ask for the
#: last one first, and `count(… IS NULL)` asks for none.
_SIDES = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Add, exp.Sub, exp.Mul, exp.DPipe, exp.Like)
_FIRST = (*_SIDES, exp.In, exp.Between)
_ALL = (
    exp.Alias, exp.Paren, exp.Cast, exp.Neg, exp.Not, exp.Ordered, exp.Order, exp.Group, exp.Where, exp.Having,
    exp.Join, exp.Distinct, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count,
)  # fmt: skip


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


def read(text: str, tables: Mapping[str, StructType], *, cases: bool = False) -> TextAsks | None:
    """What a text asks of `tables` (name of a view → schema), in a session that tells cases apart or not; None if
    sqlglot cannot read it."""
    text = _without_comments(text)
    found = _parsed(text)
    names = {name.lower(): name for name in tables}
    return None if found is None else _Reader(text, *found, names, tables, cases=cases).read()


def relations(text: str) -> Parsed | None:
    """The tables that a text names, but not its CTEs; None if sqlglot cannot read it."""
    found = _parsed(_without_comments(text))
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


def _without_comments(text: str) -> str:
    """The text with blanks for its comments, which end elsewhere for sqlglot: a backslash at the end of a line goes on
    with it in Spark, and `/*+` opens none within another."""
    return _PARTS.sub(lambda part: part[0] if part["kept"] else " " * len(part[0]), text)


def _parsed(text: str) -> tuple[Any, list[Any]] | None:
    try:
        (tree,) = sqlglot.parse(text, read=DIALECT)
        tokens = sqlglot.tokenize(text, read=DIALECT)
    except Exception:  # noqa: BLE001 - `SELECT 1 |> LIMIT 1` is an AttributeError of sqlglot's, `map(1)` an IndexError
        return None
    return None if tree is None else (tree, tokens)


class _Reader:
    def __init__(
        self,
        text: str,
        tree: Any,
        tokens: list[Any],
        names: Mapping[str, str],
        tables: Mapping[str, StructType],
        *,
        cases: bool,
    ) -> None:
        self.cases = cases
        self.text, self.tree, self.tokens, self.names, self.tables = text, tree, tokens, names, tables
        # Strings with escapes, and names or strings in double quotes, are read in several ways.
        self.certain = "\\" not in text and '"' not in text
        self.scopes: list[Scope] = []

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
            self.scopes.append(Scope(table, (alias or table).name, schema, self.certain, cases=self.cases))
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

    def _paths(self, scope: Scope, column: str) -> tuple[list[TextPath], bool]:
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

    def _span(self, scope: Scope, whole: exp.Expr, node: exp.Column, column: str) -> TextPath | None:
        """Where an expression is in the text; None if that is not certain."""
        try:
            sql = scope.text(whole)
        except Unknown:
            return None
        type_ = type_of(whole.to) if isinstance(whole, exp.Cast) else whole.expressions[-1].name.upper()
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
                again = sqlglot.parse_one(self.text[start : stop + 1], read=DIALECT)
            except SqlglotError:
                continue
            open_ = sum({"(": 1, ")": -1}.get(token.text, 0) for token in self.tokens[begins : end + 1])
            if again == whole and not open_ and not self._goes_on(end):
                if not _is_sparks(self.text[start : stop + 1]):
                    return None
                return TextPath(column, sql, type_, strict(whole), self._is_conditional(whole), start, stop)
        return None

    def _is_conditional(self, node: exp.Expr) -> bool:
        """Whether Spark may leave an expression out for some of the rows: also where a query around its own may need
        fewer rows or columns."""
        select = node.find_ancestor(exp.Select)
        if select is not self.tree or select.args.get("limit") or select.args.get("offset"):
            return True
        below = node
        for above in _above(node):
            is_all = isinstance(above, _ALL) or (isinstance(above.this, exp.Literal) and isinstance(above, _SIDES))
            if not is_all and not (above.this is below and isinstance(above, _FIRST)):
                return True
            below = above
        return False

    def _goes_on(self, end: int) -> bool:
        """Whether the token after belongs to the expression still, as in `DECIMAL(10, 2)`."""
        after = self.tokens[end + 1].text if end + 1 < len(self.tokens) else ""
        return after in ("(", ".", "[", ":", "::")


def _is_sparks(text: str) -> bool:
    """Whether Spark takes an expression too: sqlglot reads `v:0::int`, whose error is Spark's."""
    try:
        parse(text)
    except UserError:
        return False
    return True


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
