"""The clauses of a merge, from texts to bound expressions.

The rule: a clause sees the rows that it speaks of, and what it assigns fits the column. Values are cast as those of an
update; a bare column of the source is also converted as by an append, so that JSON texts become Variants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from mica.errors import UserError
from mica.expressions.joined import BOTH, JoinedExpr, Side, Sides
from mica.expressions.parse import parse
from mica.expressions.rewrite import rebuilt
from mica.expressions.set_field import field_of, with_field
from mica.expressions.tree import And, Call, Column, Expr, IsNull, Literal
from mica.records import dataclass
from mica.schema.arrow import to_arrow_field
from mica.schema.evolution import cast_to
from mica.schema.special import DEFAULT, GENERATED
from mica.schema.spelling import quoted, unquoted
from mica.schema.types import LONG, STRING, VARIANT, VOID, ArrayType, DataType, MapType, StructField, StructType
from mica.tasks.matching import Action, Assigned, Clause, When
from mica.variant.plain import to_variants
from mica.write.assignment import (
    Place,
    begins,
    is_field,
    may_be_stored,
    meant,
    note_cast,
    place_of,
    stored,
    stored_at,
    together,
)
from mica.write.assignment import shown as shown_place
from mica.write.rules import as_stored, is_identity, refuse_given, regenerated, substituted


@dataclass(frozen=True)
class MergeClause:
    """A clause as it was given; `values` are expressions by column, None for all columns."""

    when: When
    action: Action
    condition: str | None
    values: Mapping[str, str] | None = None


#: The kinds of clauses by their names in delta-spark's history.
KINDS: Mapping[str, When] = {
    "matched": "matched",
    "notMatched": "not matched",
    "notMatchedBySource": "not matched by source",
}

#: The sides that the expressions of a clause see.
SEES: Mapping[When, tuple[Side, ...]] = {
    "matched": BOTH,
    "not matched": ("source",),
    "not matched by source": ("target",),
}


def shown(clauses: Sequence[MergeClause], when: When) -> list[dict[str, str]]:
    """The clauses of a kind as delta-spark's history has them."""
    return [
        {**({} if one.condition is None else {"predicate": f"({one.condition})"}), "actionType": one.action}
        for one in clauses
        if one.when == when
    ]


def assigned_of(source: StructType, clauses: Sequence[MergeClause], alias: str, target: StructType) -> StructType:
    """The columns of the source that a table with schema evolution gets: those that a clause sets by their names. A
    field of the target sets none."""
    if any(clause.action != "delete" and clause.values is None for clause in clauses):
        return source
    keys = {_key(target, name, alias) for clause in clauses for name in clause.values or ()}
    named = {unquoted(key).lower() for key in keys if not is_field(target, key)}
    return StructType(tuple(f for f in source.fields if f.name.lower() in named))


def bound(
    sides: Sides,
    given: MergeClause,
    row_ids: tuple[str, str] | None = None,
    *,
    evolves: bool = False,
    seen: Mapping[When, tuple[Side, ...]] = SEES,
) -> Clause:
    """The clause with bound expressions, which see the sides that `seen` says. Rows that it updates lose their version,
    where files hold it (`row_ids`). With `evolves` the source may lack columns that it sets. Errors: those of
    `Merge.execute` for texts."""
    sees = seen[given.when]
    condition = None if given.condition is None else sides.predicate(given.condition, sees)
    values: dict[str, Assigned] = {}
    if given.action != "delete":
        trees: dict[str, Expr] = {}
        fields: list[tuple[Place, Expr]] = []
        # Fields that the target gets have no name in texts, but a struct of it has them.
        whole = replace(sides, readable=None) if given.values is None else sides
        for place, text, value in _values(sides, given, evolves):
            column = place[0]
            if len(place) == 1:
                values[column.name], trees[column.name] = _assigned(
                    whole, column, text, value, sees, all_fields=given.action == "update" and not evolves
                )
            else:
                own = sides.bind(value, sees, text).bound.type
                fields.append((place, stored_at(value, own, place, text)))
        for name, value in together(fields, (sides.target_alias,)).items():
            trees[name] = value
            values[name] = Assigned(sides.bind(value, sees), sides.target.field(name))
        refuse_given(sides.target, trees, sides.target_alias)
        if given.action == "update":
            values |= _generated(sides, trees, sees)
            if row_ids is not None:
                version = StructField(row_ids[1], LONG)
                values[version.name] = Assigned(sides.bind(Literal(None, LONG), sees), version)
    return Clause(given.when, given.action, condition, values)


def _generated(sides: Sides, assigned: Mapping[str, Expr], sees: tuple[Side, ...]) -> dict[str, Assigned]:
    """The generated columns that change with these assignments."""
    table, found = sides.target, {}

    def change(node: Expr) -> Expr | None:
        if not isinstance(node, Column):
            return None
        kept = replace(node, names=(sides.target_alias, *node.names))
        return kept if table.field(node.names[0]).name not in assigned else substituted(node, table, assigned)

    for name in regenerated(table, assigned):
        f = table.field(name)
        text = str(f.metadata[GENERATED])
        found[name] = Assigned(sides.bind(as_stored(rebuilt(parse(text), change), f), sees, text), f)
    return found


def _values(sides: Sides, given: MergeClause, evolves: bool) -> Iterator[tuple[Place, str, Expr]]:
    """The columns and fields that a clause sets, with the texts and trees of their values."""
    table = sides.target
    if given.values is None:
        missing = [f.name for f in table.fields if sides.source.find(f.name) is None]
        made = {f.name for f in table.fields if _makes(f, given.action)}
        if not evolves and set(missing) - made:
            raise UserError(
                "MISSING_COLUMN",
                f"the source has no column {', '.join(map(repr, missing))}, which {given.action}_all needs",
                hint=f"Add the column, or name the columns: when_…_{given.action}({{…}}).",
            )
        for f in (f for f in table.fields if f.name not in missing):
            value: Expr = Column((sides.source_alias, f.name))
            own = sides.source.field(f.name).type
            if evolves and given.action == "update" and _lacks(own, f.type):
                value = _kept(own, (f,), value, Column((sides.target_alias, f.name)))
            yield (f,), f"{sides.source_alias}.{f.name}", value
        return
    places = [(place_in(sides, name), text) for name, text in given.values.items()]
    together([(place, Literal(None, VOID)) for place, _ in places])  # refuses what is set twice
    for place, text in places:
        if len(place) > 1 and given.action == "insert":
            raise UserError(
                "INVALID_ARGUMENT",
                f"{shown_place(place)} is a field, and values of rows to insert are those of whole columns",
                hint=f"Give the value of {place[0].name!r}, with all its fields.",
                column=place[0].name,
            )
        text = meant(text, place, sides.target)  # noqa: PLW2901 - what it stands for
        yield place, text, parse(text)


def with_defaults(
    given: MergeClause, table: StructType, source: StructType, aliases: tuple[str, str], columns: Collection[str]
) -> MergeClause:
    """The clause; an insert sets those of `columns` that it lacks to the texts of their defaults. `aliases` are those
    of the target and the source."""
    if given.action != "insert" or not columns:
        return given
    values = given.values
    if values is None:
        values = {f.name: f"{quoted(aliases[1])}.{quoted(f.name)}" for f in table.fields if source.find(f.name)}
        if any(f.name not in values and not _makes(f, "insert") for f in table.fields):
            return given  # which is refused
    named = {place_of(table, _key(table, key, aliases[0]))[0].name for key in values}
    more = {name: str(table.field(name).metadata[DEFAULT]) for name in columns if name not in named}
    return replace(given, values={**values, **more}) if more else given


def _lacks(given: DataType, own: DataType, *, within: bool = False) -> bool:
    """Whether structs of a source lack fields of the table's; those in arrays and maps matter if `within`."""
    match given, own:
        case StructType(), StructType():
            return any(
                (part := given.find(f.name)) is None or _lacks(part.type, f.type, within=within) for f in own.fields
            )
        case ArrayType(), ArrayType() if within:
            return _lacks(given.element, own.element, within=within)
        case MapType(), MapType() if within:
            return any(_lacks(*pair, within=within) for pair in ((given.key, own.key), (given.value, own.value)))
    return False


def _kept(given: DataType, place: Place, source: Expr, target: Expr) -> Expr:
    """A column or field of the target with what the source's, which lacks fields, says of it: the others stay, as in
    delta-spark. It is null where both are."""
    own = place[-1].type
    assert isinstance(given, StructType)
    assert isinstance(own, StructType)
    found = target
    for f in own.fields:
        part = given.find(f.name)
        if part is None:
            continue
        inner, value = (*place, f), field_of(source, (part.name,))
        if _lacks(part.type, f.type):
            value = _kept(part.type, inner, value, field_of(target, (f.name,)))
        else:
            value = stored_at(value, part.type, inner, f"source.{shown_place(inner)}")
        found = with_field(found, f.name, value)
    return Call("case", (And((IsNull(source), IsNull(target))), Literal(None, VOID), found))


def _makes(f: StructField, action: Action) -> bool:
    """Whether the table itself makes the values of a column that the source lacks."""
    return GENERATED in f.metadata or is_identity(f) or (action == "insert" and DEFAULT in f.metadata)


def place_in(sides: Sides, name: str) -> Place:
    """The column or field of the target that a key of `set` or `values` names, with or without the target's alias. What
    the alias is before is decided by the columns that the target had: those that evolution adds hide no field."""
    return place_of(sides.target, _key(sides.readable or sides.target, name, sides.target_alias))


def _key(target: StructType, name: str, alias: str) -> str:
    """A key without the target's alias. It comes before a column that is called so: `t.x` is a field of `t` if the
    target has no column `x`."""
    bare = without_alias(name, alias)
    is_column = target.find(name) is not None or (target.find(alias) is not None and not begins(target, bare))
    return name if is_column else bare


def without_alias(name: str, alias: str) -> str:
    """A key of `set` without the target's alias before it, which may be in backticks."""
    for written in (alias, quoted(alias)):
        if name.lower().startswith(f"{written.lower()}.") and len(name) > len(written) + 1:
            return name[len(written) + 1 :]
    return name


def _assigned(
    sides: Sides, column: StructField, text: str, value: Expr, sees: tuple[Side, ...], *, all_fields: bool
) -> tuple[Assigned, Expr]:
    """The value of a column, bound and as a tree. An update says all fields of a struct (`all_fields`): those that the
    value lacks would be lost."""
    given = sides.bind(value, sees, text)
    own = given.bound.type
    converts = _converts(given, value, column) and not (all_fields and _lacks(own, column.type, within=True))
    if own != column.type and not may_be_stored(own, column.type) and converts:
        note_cast(own, column.type)
        cast_to(to_arrow_field(StructField(column.name, own)), column, column.name, to_variants)  # refuses what differs
        # As others see the value, of which generated columns are made.
        stored_as = Call("parse_json", (value,)) if (own, column.type) == (STRING, VARIANT) else value
        return Assigned(given, column, plain=True), stored_as
    cast = stored(value, own, column, text)
    return Assigned(sides.bind(cast, sees, text), column), cast


def _converts(given: JoinedExpr, value: Expr, column: StructField) -> bool:
    """Whether a value is converted as an append's: a column of the source, or structs, lists and maps."""
    nested = StructType | ArrayType | MapType
    of_source = isinstance(value, Column) and given.sides == ("source",)
    return (of_source and column.type == VARIANT) or (
        isinstance(column.type, nested) and isinstance(given.bound.type, nested)
    )
