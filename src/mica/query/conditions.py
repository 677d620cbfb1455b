"""What a scan does with the conditions above a table.

The rule: it evaluates a condition only if mica reads it exactly as Spark does. By one that only Spark can evaluate (a
comparison by a collation, or of local times in a zone that changes its clocks) it skips files. Everything else is
Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mica import engines
from mica.cached import cached_property
from mica.engines.spark import chars
from mica.engines.spark.folds import Folded
from mica.engines.spark.session import is_connect
from mica.errors import MicaError
from mica.expressions.bind import BoundExpr, bind, bind_value
from mica.expressions.bound_expr import type_of
from mica.expressions.collations import collations_of
from mica.expressions.tree import Cast, Expr, walk
from mica.query.narrowed import Narrowed
from mica.query.pushed import Pushed
from mica.scan.scan import Scan
from mica.schema.hidden import Readable
from mica.schema.types import STRING
from mica.skipping.file_plan import FilePlan
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Conditions:
    """The conjuncts above one table, by their numbers in Spark's order, as the session evaluates them. `conjuncts` has
    of each what mica takes it for, if it has such an expression, and how Spark shows it."""

    def __init__(self, table: Table, spark: SparkSession, conjuncts: Iterable[tuple[Pushed | None, str]]) -> None:
        self.table, self.spark = table, spark
        self._engine = engines.of(spark)
        ansi, timezone = self._engine.settings()  # the session decides
        self._options: dict[str, Any] = {"ansi": ansi, "timezone": timezone}
        #: Whether the constants are Catalyst's, and not those of a text.
        self._folded = not is_connect(spark)
        # Catalyst has padded what is compared with CHAR columns, but not the text that Connect reads.
        pads, blanks = chars.padding(spark, table.schema)
        self._chars: dict[str, Any] = {"pads": pads and not self._folded, "blanks": blanks}
        self.evaluated: dict[int, Pushed] = {}
        self.skipping: dict[int, Pushed] = {}
        self.left: list[tuple[str, str]] = []
        for number, (found, shown) in enumerate(conjuncts):
            self._take(number, found, shown)

    def _take(self, number: int, found: Pushed | None, shown: str) -> None:
        if found is None:
            self.left.append((shown, "not an expression of mica's"))
            return
        try:
            bound = self._bound(bind, found.text)
        except MicaError as e:
            self.left.append((found.text, e.message.splitlines()[0]))
            return
        # A cast that fails must not fail for a row that an earlier conjunct, Spark's, excludes.
        fails = found.strict or any(map(_casts_text, walk(bound.expr)))
        late = fails and len(self.evaluated) < number
        if late or found.skips or collations_of(bound.expr) or not self._read_alike(bound):
            self.skipping[number] = found
        else:
            self.evaluated[number] = found

    def value(self, text: str) -> BoundExpr | None:
        """An expression over the table, if mica reads it exactly as Spark does."""
        try:
            bound = self._bound(bind_value, text)
        except MicaError:
            return None
        return bound if self._read_alike(bound) else None

    def _bound(self, by: Callable[..., BoundExpr], text: str) -> BoundExpr:
        readable = Readable(self.table.schema.fields)
        return by(text, readable, partition_columns=self.table.partition_by, **self._chars, **self._options)

    def _read_alike(self, bound: BoundExpr) -> bool:
        return self._engine.reads_alike(bound, folded=self._folded)

    def give_back(self) -> None:
        """Spark evaluates them all; files are skipped by them."""
        self.skipping |= self.evaluated
        self.evaluated = {}

    @property
    def where(self) -> str | None:
        """What the scan evaluates."""
        return " AND ".join(p.text for p in self.evaluated.values()) or None

    @property
    def every(self) -> str | None:
        """By what the scan skips files."""
        return " AND ".join(p.text for _, p in sorted({**self.evaluated, **self.skipping}.items())) or None

    @cached_property
    def _source(self) -> Scan:
        whole = self.table.scan(spark=self.spark, **self._options)
        return replace(whole, where=self.every, **self._chars)

    @cached_property
    def _skips(self) -> BoundExpr | None:
        """All conditions, if the scan does not evaluate some of them."""
        asked = self._source.predicate if self.skipping else None
        return None if asked is None else self._engine.skips_by(asked, folded=self._folded)

    @cached_property
    def _plan(self) -> FilePlan:
        return self._source.plan if self._skips is None else self._source.planned_by(self._skips)

    def scan(self, columns: Mapping[str, str] | Sequence[str] | None, where: str | None = None) -> Scan:
        """A scan of the files that the conditions leave."""
        return replace(self._source, where=where, columns=columns, planned=self._plan, skips=self._skips)

    def narrowed(
        self,
        view: str,
        scan: Scan,
        columns: Iterable[str],
        reader: str,
        folded: Folded | None = None,
        limit: int | None = None,
    ) -> Narrowed:
        """The place of the table as `scan` reads it for Spark under these conditions: `columns`, by `reader`."""
        evaluated, skipping = (tuple(p.text for p in them.values()) for them in (self.evaluated, self.skipping))
        left, read = tuple(self.left), tuple(columns)
        return Narrowed(view, self.table, scan, self.every, evaluated, skipping, left, read, reader, folded, limit)


def _casts_text(expr: Expr) -> bool:
    """Whether it fails for some texts, as `s > 3` does with ANSI."""
    return isinstance(expr, Cast) and expr.strict and type_of(expr.child) == STRING
