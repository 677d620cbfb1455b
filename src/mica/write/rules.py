"""The rules of a table as tasks apply them, bound to its schema; and what a write leaves behind of them.

The rule: every rule that the table's metadata has is bound here, or the write is refused by name. A table without rules
costs nothing.

Source: PROTOCOL.md, "Column Invariants", "CHECK Constraints", "Generated Columns", "Default Columns", "Identity
Columns"; delta-spark's `Constraints`, `GeneratedColumn` and `IdentityColumn`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from mica.collation.names import BINARY
from mica.errors import MicaError, UnsupportedTableError, UserError
from mica.expressions.bind import BoundExpr, bind, bind_value
from mica.expressions.collations import refuse_in_process
from mica.expressions.parse import parse
from mica.expressions.rewrite import rebuilt
from mica.expressions.set_field import field_of
from mica.expressions.texts import TOO_LONG
from mica.expressions.tree import Call, Cast, Collate, Column, Compare, Expr, Literal, Not, Op, walk
from mica.log.actions import Metadata
from mica.properties import CONSTRAINTS
from mica.records import dataclass
from mica.schema import json as schema_json
from mica.schema.char import declared
from mica.schema.ddl import type_to_ddl
from mica.schema.edit import places
from mica.schema.special import (
    DEFAULT,
    GENERATED,
    HIGH_WATER_MARK,
    IDENTITY_EXPLICIT,
    IDENTITY_START,
    IDENTITY_STEP,
    INVARIANTS,
)
from mica.schema.spelling import quote_if_needed
from mica.schema.types import BOOLEAN, LONG, STRING, VOID, DataType, StructField, StructType, loosened
from mica.stats.columns import physical_name
from mica.tasks.rules import Identity, RowCheck, Rules
from mica.write.check_texts import as_meant

#: The numbers of an identity column.
LONGS = range(-(1 << 63), 1 << 63)


def constraints(configuration: Mapping[str, str]) -> dict[str, str]:
    """The CHECK constraints of a table: expressions by name."""
    found = {name[len(CONSTRAINTS) :]: text for name, text in configuration.items() if name.startswith(CONSTRAINTS)}
    return dict(sorted(found.items()))


def rules_of(
    schema: StructType,
    configuration: Mapping[str, str],
    table: str,
    *,
    ansi: bool,
    timezone: str,
    every_default: bool = True,
) -> Rules:
    """The rules of a table, bound as the session evaluates expressions. Without `every_default` those may be unknown
    that the rows to come need not.

    Errors: UNSUPPORTED_WRITER_FEATURE for an expression that mica cannot evaluate, or an unreadable rule.
    """
    return _Binding(schema, table, ansi, timezone).rules(configuration, every_default=every_default)


def refuse_other_types(schema: StructType, columns: Iterable[StructField], *, ansi: bool, timezone: str) -> None:
    """Refuses one of these columns that is generated and of another type than its expression, as delta-spark does where
    it makes or changes a table; one that has it is written with casts. Errors: TYPE_MISMATCH."""
    for f in columns:
        text = f.metadata.get(GENERATED)
        found = f.type if text is None else bind_value(text, schema, ansi=ansi, timezone=timezone).type
        if loosened(found) != loosened(f.type):
            own = type_to_ddl(f.type)
            what = f"the generated column {f.name!r} is {own}, and its expression {text} is {type_to_ddl(found)}"
            raise UserError("TYPE_MISMATCH", what, hint=f"Its expression must be CAST({text} AS {own}).")


@dataclass(frozen=True)
class _Binding:
    schema: StructType
    table: str
    ansi: bool
    timezone: str

    def rules(self, configuration: Mapping[str, str], *, every_default: bool) -> Rules:
        checks = [
            self.check(f"the CHECK constraint {name!r}", text, "checkConstraints")
            for name, text in constraints(configuration).items()
        ]
        checks += [self.check(f"the invariant of {at}", text, "invariants") for at, text in self.invariants()]
        checks += self.sizes()
        defaults, unknown, identities, generated, given = {}, {}, {}, {}, {}
        for f in self.schema.fields:
            if (text := f.metadata.get(DEFAULT)) is not None:
                try:
                    defaults[f.name] = self.default(f, text)
                except UnsupportedTableError as e:
                    if every_default:
                        raise
                    e.hint = "Give the column in each row, or write by INSERT or append of a DataFrame: Spark knows it."
                    unknown[f.name] = e
            if (text := f.metadata.get(GENERATED)) is not None:
                what = f"the generation expression of {f.name!r}"
                generated[f.name] = self.value(what, f, text, "generatedColumns")
                given[f.name] = self.given(what, f, text)
                self.refuse_generated(what, text)
            if is_identity(f):
                identities[f.name] = self.identity(f)
        return Rules(tuple(checks), defaults, unknown, identities, generated, given, self.timezone)

    def invariants(self) -> Iterator[tuple[str, str]]:
        """The invariants as (column, expression). Source: PROTOCOL.md, "Column Invariants"."""
        for at, _, f, reachable in places(self.schema):
            text = None if f is None else f.metadata.get(INVARIANTS)
            if text is None:
                continue
            what = f"the invariant of {at}"
            if not reachable:
                raise self.unsupported(what, text, "invariants", "it is inside of an array or a map")
            try:
                found = orjson.loads(text)["expression"]["expression"]
            except (orjson.JSONDecodeError, KeyError, TypeError):
                found = None
            if not isinstance(found, str):
                raise self.unsupported(what, text, "invariants", "it is not an expression")
            yield at, found

    def sizes(self) -> Iterator[RowCheck]:
        """The columns with strings of a maximal length, at any depth; delta-spark's conditions."""
        for f in self.schema.fields:
            type_ = declared(f)
            if not type_:
                continue
            column = bind_value(Column((f.name,)), self.schema)
            long = Call(TOO_LONG, (column.expr, Literal(type_, STRING)), BOOLEAN)
            bound = replace(column, expr=Not(long), type=BOOLEAN, collations=())
            yield RowCheck(f"the type {type_} of {f.name!r}", f"length({quote_if_needed(f.name)})", bound, "type")

    def check(self, what: str, text: str, feature: str) -> RowCheck:
        try:
            said = as_meant(text, self.schema) if feature == "checkConstraints" else text
            bound = bind(said, self.schema, ansi=self.ansi, timezone=self.timezone)
            refuse_in_process(bound.expr)
        except MicaError as e:
            raise self.unsupported(what, text, feature, e.message) from None
        return RowCheck(what, text, bound)

    def value(self, what: str, f: StructField, text: Any, feature: str) -> BoundExpr:
        """The expression of a column's values, cast to its type."""
        try:
            bound = bind_value(as_stored(parse(text), f), self.schema, ansi=self.ansi, timezone=self.timezone)
            refuse_in_process(bound.expr)
        except (MicaError, TypeError) as e:
            raise self.unsupported(what, text, feature, str(getattr(e, "message", e))) from None
        return bound

    def default(self, f: StructField, text: Any) -> BoundExpr:
        what = f"the default of {f.name!r}"
        bound = self.value(what, f, text, "allowColumnDefaults")
        if bound.leaves:
            raise self.unsupported(what, text, "allowColumnDefaults", "it uses columns")
        return bound

    def given(self, what: str, f: StructField, text: Any) -> RowCheck:
        column: Expr = Column((f.name,))
        own = Collate(column, str(BINARY)) if f.type == STRING else column
        same = Compare(Op.SAFE_EQ, own, as_stored(parse(text), f))
        try:
            bound = bind(same, self.schema, ansi=self.ansi, timezone=self.timezone)
        except MicaError as e:
            raise self.unsupported(what, text, "generatedColumns", e.message) from None
        return RowCheck(what, text, bound, "generated")

    def refuse_generated(self, what: str, text: str) -> None:
        """Refuses an expression over a generated column, as Spark does: all are made of the same given columns."""
        for e in walk(parse(text)):
            column = self.schema.find(e.names[0]) if isinstance(e, Column) else None
            if column is not None and GENERATED in column.metadata:
                why = f"it uses the generated column {column.name!r}"
                raise self.unsupported(what, text, "generatedColumns", why)

    def identity(self, f: StructField) -> Identity:
        numbers = [f.metadata.get(key) for key in (IDENTITY_START, IDENTITY_STEP, HIGH_WATER_MARK)]
        start, step, last = (n if isinstance(n, int) and not isinstance(n, bool) else None for n in numbers)
        if start is None or not step or f.type != LONG:
            why = "it needs BIGINT, a start and a step other than 0"
            raise self.unsupported(f"the identity of {f.name!r}", type_to_ddl(f.type), "identityColumns", why)
        return Identity(start if last is None else last + step, step)

    def unsupported(self, what: str, text: Any, feature: str, why: str) -> UnsupportedTableError:
        another = ", or drop the constraint and add it in Spark's words" if feature == "checkConstraints" else ""
        return UnsupportedTableError(
            "UNSUPPORTED_WRITER_FEATURE",
            f"{self.table} has {what} ({text}), which mica cannot evaluate: {why}",
            hint=f"Write to it with an engine that supports the expression{another}.",
            feature=feature,
        )


def as_stored(value: Expr, column: StructField) -> Expr:
    """The value as it is stored in the column: cast to its type, and a string without its collation."""
    cast = Cast(value, column.type)
    return Collate(cast, str(BINARY)) if column.type == STRING else cast


def is_identity(f: StructField) -> bool:
    """Whether the column is an identity column."""
    return IDENTITY_START in f.metadata


def refuse_given(schema: StructType, names: Iterable[str], table: str) -> None:
    """Refuses values for identity columns that are generated ALWAYS. Errors: IDENTITY_GIVEN."""
    for name in names:
        f = schema.find(name)
        if f is not None and is_identity(f) and f.metadata.get(IDENTITY_EXPLICIT) is not True:
            raise UserError(
                "IDENTITY_GIVEN",
                f"{table} makes the values of its identity column {f.name!r} itself (GENERATED ALWAYS)",
                hint="Leave the column out.",
                column=f.name,
            )


def regenerated(schema: StructType, assigned: Mapping[str, Expr]) -> dict[str, Expr]:
    """The generated columns that change with these assignments (columns by the schema's names), as expressions over the
    old row.
    """
    found: dict[str, Expr] = {}
    for f in schema.fields:
        text = f.metadata.get(GENERATED)
        if text is None or f.name in assigned:
            continue
        own = parse(text)
        if any(isinstance(e, Column) and _column(schema, e) in assigned for e in walk(own)):
            found[f.name] = as_stored(substituted(own, schema, assigned), f)
    return found


def numbered(metadata: Metadata, end: int) -> Metadata:
    """The metadata after identity columns got the numbers below `end`; unchanged if they got none."""
    if not end:
        return metadata
    schema = schema_json.loads(metadata.schema_string)
    fields = tuple(_numbered(f, end) if is_identity(f) else f for f in schema.fields)
    return replace(metadata, schema_string=schema_json.dumps(StructType(fields)))


def _numbered(f: StructField, end: int) -> StructField:
    step, last = f.metadata[IDENTITY_STEP], f.metadata.get(HIGH_WATER_MARK)
    first = f.metadata[IDENTITY_START] if last is None else last + step
    return f.with_metadata({HIGH_WATER_MARK: first + step * (end - 1)})


def beyond(start: int, step: int, value: int) -> int | None:
    """The first number of a sequence that `value` is not beyond; None if it comes before the first of all."""
    return None if (value - start) * step < 0 else start - (start - value) // step * step


def further(f: StructField, value: int) -> int | None:
    """The mark that an identity column needs for `value`; None if its own will do."""
    step, own = f.metadata[IDENTITY_STEP], f.metadata.get(HIGH_WATER_MARK)
    wanted = beyond(f.metadata[IDENTITY_START], step, value)
    return None if wanted is None or (own is not None and (wanted - own) * step <= 0) else wanted


def never_again(older: Metadata, newest: Metadata) -> Metadata:
    """The metadata of an older version, whose identity columns go on where those of the newest one are: numbers that
    were given once are not given again."""
    marks = {physical_name(f): f.metadata.get(HIGH_WATER_MARK) for f in schema_json.loads(newest.schema_string).fields}

    def of(f: StructField) -> StructField:
        mark = marks.get(physical_name(f))
        if mark is None or not is_identity(f):
            return f
        # The newest one may have been made anew since: with another start, or on the way to the other side.
        wanted = further(f, mark)
        if wanted is None:
            return f
        return f.with_metadata({HIGH_WATER_MARK: wanted if wanted in LONGS else mark})

    before = schema_json.loads(older.schema_string)
    fields = tuple(map(of, before.fields))
    if fields == before.fields:
        return older
    return replace(older, schema_string=schema_json.dumps(StructType(fields)))


def uses(schema: StructType, configuration: Mapping[str, str], path: Sequence[str]) -> list[str]:
    """The rules that name a column, one inside of it or one around it, as people know them. An expression that cannot
    be parsed counts if it holds the name.
    """
    wanted = tuple(name.lower() for name in path)
    return [
        what
        for key, what, text in expressions(schema, configuration)
        if _names_one(text, wanted, schema if key == CONSTRAINTS else None)
    ]


def expressions(schema: StructType, configuration: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The rules that are expressions: the key that they stand under (of a property or a field), what people know them
    as, and their texts."""
    for name, text in constraints(configuration).items():
        yield CONSTRAINTS, f"the CHECK constraint {name!r}", text
    for at, _, f, _ in places(schema):
        for key, what in ((GENERATED, "generation expression"), (INVARIANTS, "invariant")):
            if f is not None and key in f.metadata:
                yield key, f"the {what} of {at!r}", str(f.metadata[key])


def _names_one(text: str, wanted: tuple[str, ...], of_check: StructType | None) -> bool:
    try:
        text = text if of_check is None else as_meant(text, of_check)
        columns = [tuple(n.lower() for n in e.names) for e in walk(parse(text)) if isinstance(e, Column)]
    except MicaError:
        return wanted[-1] in text.lower()
    return any(names[: len(wanted)] == wanted[: len(names)] for names in columns)


def _column(schema: StructType, column: Column) -> str:
    found = schema.find(column.names[0])
    return column.names[0] if found is None else found.name


def _spelled(schema: StructType, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names as the schema spells them."""
    found: list[str] = []
    here: DataType = schema
    for name in names:
        field = here.find(name) if isinstance(here, StructType) else None
        found.append(name if field is None else field.name)
        here = VOID if field is None else field.type
    return tuple(found)


def substituted(expr: Expr, schema: StructType, assigned: Mapping[str, Expr]) -> Expr:
    """The expression with the new values of assigned columns."""

    def change(node: Expr) -> Expr | None:
        if not isinstance(node, Column) or _column(schema, node) not in assigned:
            return None
        return field_of(assigned[_column(schema, node)], _spelled(schema, node.names)[1:])

    return rebuilt(expr, change)
