"""Binds casts and the constants that are texts.

The rule: what a file can supply in the requested type is a leaf of that type; a constant is cast now.
"""

from __future__ import annotations

from typing import Any

from mica import moment
from mica.cached import cached_property
from mica.collation.names import BINARY
from mica.errors import UserError
from mica.expressions import casts, moments
from mica.expressions.bind_leaves import LeafBinder
from mica.expressions.bound_expr import type_of
from mica.expressions.coerce import TIMES, is_plain
from mica.expressions.collations import stripped
from mica.expressions.tree import Cast, Collate, Expr, Literal, Path, Text, to_sql
from mica.schema.ddl import type_to_ddl
from mica.schema.interval_types import is_interval
from mica.schema.types import STRING, VARIANT, DataType, Primitive, contains
from mica.variant.path import VariantPath

#: The hint for a cast that Variants do not have.
_VARIANT_CASTS = (
    "A VARIANT is cast to plain types, arrays, structs of nullable fields and maps with keys of type STRING, at any "
    "depth."
)


class CastBinder(LeafBinder):
    """Binds casts."""

    def text_literal(self, expr: Text) -> Literal:
        """Turns DATE, TIMESTAMP and TIMESTAMP_NTZ texts into constants."""
        try:
            value = self.constant(expr.text, STRING, expr.type, ansi=True)
        except casts.CastFailedError:
            what = f"{expr.text!r} is no {type_to_ddl(expr.type)}"
            raise self.error("INVALID_EXPRESSION", what, expr.at) from None
        return Literal(value, expr.type, at=expr.at)

    def constant(self, value: Any, source: DataType, target: DataType, *, ansi: bool) -> Any:
        """Casts a constant. Raises CastFailedError."""
        if source == STRING and target in TIMES and value is not None:
            named = moments.named(value, target, self.now, self.timezone)
            if named is not None:
                return named
        return casts.cast_value(value, source, target, self.timezone, ansi=ansi)

    @cached_property
    def now(self) -> int:
        """The statement's moment, in microseconds since the epoch."""
        return moment.now()

    def cast(self, expr: Cast) -> Expr:
        """Binds a cast; the cast of a path moves into its leaf, because the file supplies the requested type."""
        child = expr.child
        if isinstance(child, Path) and self.in_column(child):
            column, path = self.path(child)
            self.check_variant_cast(expr)
            return self.leaf(column, path, expr.type, strict=expr.strict, at=expr.at)
        if expr.type != VARIANT and (whole := self.variant_column(child)) is not None:
            self.check_variant_cast(expr)
            return self.leaf(whole, VariantPath(), expr.type, strict=expr.strict, at=expr.at)
        bound = stripped(self.bind(child))
        if expr.type == STRING and type_of(bound) == STRING:
            # A cast to a plain string has the binary collation, as a plain string column has.
            return Collate(bound, str(BINARY), explicit=False, at=expr.at)
        cast = self.cast_to(bound, expr.type, expr.at, tries=not expr.strict, stores=expr.stores)
        # So have the strings in a nested value.
        return Cast(bound, expr.type, at=expr.at) if cast is bound and contains(expr.type, STRING) else cast

    def check_variant_cast(self, expr: Cast) -> None:
        """Errors: TYPE_MISMATCH for a type that a VARIANT has no cast to."""
        if not casts.variant_holds(expr.type):
            what = f"there is no cast from VARIANT to {type_to_ddl(expr.type)}"
            raise self.error("TYPE_MISMATCH", what, expr.at, _VARIANT_CASTS)

    def no_cast(self, source: DataType, target: DataType, at: int, *, legacy: bool, merges: bool) -> UserError:
        """The error for a cast that there is not; `legacy`: without ANSI; `merges`: it makes one Variant of several."""
        shown = f"from {type_to_ddl(source)} to {type_to_ddl(target)}"
        if VARIANT in (source, target) and not merges:
            return self.error("TYPE_MISMATCH", f"there is no cast {shown}", at, _VARIANT_CASTS)
        if is_plain(source) and is_plain(target):
            loose = not legacy and casts.can_cast(source, target, ansi=False)
            return self.error("TYPE_MISMATCH", f"there is no cast {shown}{' with ANSI' * loose}", at)
        return self.error("UNSUPPORTED_EXPRESSION", f"a cast {shown} cannot be used here yet", at)

    def cast_to(
        self,
        bound: Expr,
        target: DataType,
        at: int,
        *,
        tries: bool = False,
        stores: bool = False,
        ansi: bool | None = None,
    ) -> Expr:
        """Casts a bound expression. TRY_CAST follows ANSI in any session, with null instead of an error; so does the
        cast of an assignment (`stores`), with an error. `ansi` in place of the session's."""
        ansi = (self.ansi if ansi is None else ansi) or stores
        source, legacy = type_of(bound), not ansi and not tries
        # Without ANSI too, Spark fails for an interval that is none, for a date or time that is too far for another
        # kind of time, and for a Variant of another type.
        intervals = is_interval(source) or is_interval(target)
        always = intervals or source == VARIANT or (source in TIMES and target in TIMES)
        strict = not tries and (ansi or always)
        if source == target:
            return bound
        merges = target == VARIANT and source != VARIANT and contains(source, VARIANT)  # Variants into one
        if merges or not casts.can_cast(source, target, ansi=not legacy, by_name=stores):
            raise self.no_cast(source, target, at, legacy=legacy, merges=merges)
        plain = isinstance(target, Primitive) and target != VARIANT
        if isinstance(bound, Literal) and (plain or bound.value is None):
            try:
                value = self.constant(bound.value, source, target, ansi=not legacy)
            except casts.CastFailedError:
                if strict:
                    what = f"{to_sql(bound)} cannot be cast to {type_to_ddl(target)}"
                    condition = casts.condition_of(source, target)
                    raise self.error("INVALID_CAST", what, at, condition=condition) from None
                value = None
            return Literal(value, target, at=at)
        return Cast(bound, target, strict, legacy=legacy, stores=stores, at=at)
