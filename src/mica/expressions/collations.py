"""The collation by which a comparison of strings is evaluated.

The rule is Spark's: an explicit collation (COLLATE) wins over a column's, a column's over a constant's. Two explicit
collations must be equal, and so must those of two columns. Without a collation, strings are compared by their bytes.

    strength      | what
    --------------|------------------------------------------------------------------------
    EXPLICIT      | s COLLATE de
    IMPLICIT      | a column, with its collation or binary; a cast of a string (binary)
    DEFAULT       | a constant; a path of a Variant; a cast of anything else

Source: Spark SQL reference, "Collation", the rules of precedence; checked against Spark 4.2.1.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from mica.collation import lcase
from mica.collation.identifier import Identifier
from mica.collation.identifier import parse as identifier
from mica.collation.names import BINARY, LCASE, base_of, is_binary, to_sql
from mica.collation.ordering import Ordering
from mica.errors import UserError
from mica.expressions.tree import Call, Collate, Compare, Expr, In, walk
from mica.schema.lists import offsets_from_zero


class Strength(enum.IntEnum):
    """The precedence of a string's collation."""

    DEFAULT = 0
    IMPLICIT = 1
    EXPLICIT = 2


#: A string's collation and its precedence.
Held = tuple[Strength, Identifier]
PLAIN: Held = (Strength.DEFAULT, BINARY)

#: The ways out of NEEDS_SPARK: of a scan, of a DataFrame of the format, of a change without a session, of rows that
#: replace others, of the rest.
TO_DF = "Use scan.to_df(spark), or compare bytes: s COLLATE UTF8_BINARY = 'x'."
FRAME = "Leave option where out and filter the DataFrame: .load(path).where(…)."
SESSION = "Pass spark=mica.session(), or compare bytes: s COLLATE UTF8_BINARY = 'x'."
ROWS = "Give the rows as a DataFrame of Spark, or compare bytes: s COLLATE UTF8_BINARY = 'x'."
BYTES = "Compare bytes: s COLLATE UTF8_BINARY = 'x'."


def common_of(sides: Iterable[Held], shown: str) -> str | None:
    """Returns the collation of a comparison, as Spark spells its identifier; None: binary.

    Errors: COLLATION_MISMATCH where Spark finds them ambiguous; UNKNOWN_COLLATION for one that Spark does not have.
    """
    held = list(sides)
    strongest = max(strength for strength, _ in held)
    asked = [identifier for strength, identifier in held if strength == strongest]
    names = {to_sql(identifier) or identifier.at(None).key for identifier in asked}
    if len(names) > 1:
        raise UserError(
            "COLLATION_MISMATCH",
            f"{shown} compares strings of the collations {' and '.join(sorted(names))}",
            hint="Choose one, as in s COLLATE UNICODE_CI = t.",
        )
    return None if is_binary(asked[0]) else spelled(asked[0], shown)


def spelled(identifier: Identifier, shown: str) -> str:
    """Returns the identifier in Spark's spelling, without its version."""
    name = to_sql(identifier)
    if name is None:
        raise UserError(
            "UNKNOWN_COLLATION",
            f"{shown} is compared by the collation {identifier}, which Spark does not have",
            hint="To compare bytes, write COLLATE UTF8_BINARY after it.",
            collation=str(identifier),
        )
    return f"{identifier.provider.lower()}.{name}"


def searches(function: str, collation: str) -> bool:
    """Whether Spark supports a collation in a string function: LIKE supports UTF8_LCASE only; startswith, endswith
    and contains support every collation but those that ignore accents and not case.
    """
    if function == "like":
        return identifier(collation).same(LCASE)
    parts = collation.split("_")
    return function in ("startswith", "endswith", "contains") and ("AI" not in parts or "CI" in parts)


#: What gives the same of strings of any collation: they count, move or copy characters and compare none. A string that
#: they return keeps the collation, which what returns a plain one (`md5`) is not here for.
_BLIND = frozenset(
    "length char_length octet_length bit_length ascii crc32 levenshtein unhex encode reverse substring right concat "
    "concat_ws repeat lpad rpad overlay hex elt case coalesce".split()
)

#: What gives the same by the collations without a language; Spark trims by none that ignores accents.
_BY_ROOT = frozenset(("upper", "lower"))
_TRIMS = frozenset(("trim", "ltrim", "rtrim"))


def is_blind(call: Call, collation: Identifier) -> bool:
    """Whether a function gives the same of strings of this collation as of plain ones."""
    name = to_sql(collation)
    if call.name in _BLIND or name is None:
        return call.name in _BLIND
    trims = call.name in _TRIMS and len(call.args) == 1 and "AI" not in name.split("_")
    by_root = name.startswith("UTF8_") or base_of(name) == "UNICODE"
    return trims or (call.name in _BY_ROOT and by_root)


def collations_of(expr: Expr) -> list[str]:
    """The collations used by comparisons in a bound expression, each once; binary ones have none."""
    found = [node.collation for node in walk(expr) if isinstance(node, Compare | In | Call) and node.collation]
    return list(dict.fromkeys(found))


def for_change(comparator: Ordering, session: str = SESSION) -> str:
    """The way out for a change of rows: with a session, which is got as `session` says, the engine has asked its
    comparator for what it can."""
    return session if isinstance(comparator, lcase.InProcess) else BYTES


def refuse_in_process(expr: Expr, hint: str = BYTES) -> None:
    """Errors: NEEDS_SPARK for a comparison that only Spark can evaluate by its collation."""
    for node in walk(expr):
        if isinstance(node, Compare | In):
            in_process("", node.collation, hint)
        elif isinstance(node, Call) and node.collation is not None and not _is_searched(node, node.collation):
            raise _needs_spark(node.collation, hint)


def _is_searched(call: Call, collation: str) -> bool:
    from mica.expressions import lcase_search  # a plain read searches nothing

    return judged_in_process(collation) and lcase_search.has_search(call)


def in_process(values: Any, collation: str | None, hint: str = BYTES) -> Any:
    """Maps strings (an array, a scalar or a Python string; null stays null), and those inside of arrays and structs, to
    keys whose bytes compare as `collation` requires. Errors: NEEDS_SPARK for a collation that only Spark can evaluate.
    """
    if collation is None or values is None:
        return values
    if not judged_in_process(collation):
        raise _needs_spark(collation, hint)
    if isinstance(values, str):
        return lcase.fold(values)
    return _folded(pa.repeat(values, 1))[0] if isinstance(values, pa.Scalar) else _folded(values)


def _folded(values: pa.Array) -> pa.Array:
    if pa.types.is_list(values.type):
        parts = _folded(values.flatten())
        return pa.ListArray.from_arrays(offsets_from_zero(values), parts, type=values.type, mask=values.is_null())
    if pa.types.is_struct(values.type):
        fields = [f.with_nullable(True) for f in values.type]
        return pa.StructArray.from_arrays([*map(_folded, values.flatten())], fields=fields, mask=values.is_null())
    return lcase.folded(values) if pa.types.is_string(values.type) else values


def _needs_spark(collation: str, hint: str) -> UserError:
    return UserError(
        "NEEDS_SPARK",
        f"only Spark can compare strings of the collation {collation}, and here mica compares",
        hint=hint,
        collation=collation,
    )


def judged_in_process(collation: str) -> bool:
    """Whether the collation can be evaluated without Spark, with exactly Spark's results."""
    return identifier(collation).same(LCASE)


def stripped(expr: Expr) -> Expr:
    """Returns the string expression without its COLLATE."""
    return expr.child if isinstance(expr, Collate) else expr
