"""`mica.explain`: what each table's scan in a query reads, what was pushed into it, what stayed with Spark and why.

The rule: it plans as `mica.sql` does and runs nothing; only `analyze` reads rows, by each scan in this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mica.arguments import FLAG, SESSION, STATEMENT, Kind, takes
from mica.engines.spark.session import current, is_connect
from mica.engines.spark.types import is_frame
from mica.errors import UserError
from mica.query import connect, entry, frames, select, variables
from mica.query.narrowed import Narrowed
from mica.query.tables import tables_of
from mica.records import dataclass
from mica.scan.explanation import Explanation
from mica.scan.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@takes(
    text=Kind("a string or a Spark DataFrame", lambda v: STATEMENT.fits(v) or is_frame(v)), spark=SESSION, analyze=FLAG
)
def explain(
    text: str | DataFrame,
    spark: SparkSession | None = None,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    analyze: bool = False,
) -> QueryExplanation:
    """Explains how `mica.sql` reads the tables of a query: files, row groups, pages and bytes of each, which conditions
    its scan evaluates, and which stay with Spark and why. The result prints well and has `to_dict()`.

    A DataFrame in place of the text was made of `spark.table` in an enabled session (`mica.enable`): how its actions
    read these tables.

    `analyze` runs each scan in this process, discards its rows and measures.

    On Spark Connect, which shows no plan, it is what sqlglot reads in the text.

    Errors: Spark's own for the text; INVALID_ARGUMENT for a text that is not a query of tables of mica's, and for a
    DataFrame that Spark reads; those of reading with `analyze`.
    """
    if not isinstance(text, str):
        return QueryExplanation(tuple(_of_frame(text)), analyze)
    spark = current(spark)
    text = entry.identified(variables.substituted(text, spark), spark, args)
    found = tables_of(text, spark)
    if found is None or not found.views:
        raise UserError(
            "INVALID_ARGUMENT",
            "the text is not a query of a table that mica reads",
            hint="Name a table as delta.`path`, or give it a name with mica.register.",
        )
    scans = connect.narrowed(spark, found) if is_connect(spark) else select.narrowed(spark, found, args)
    return QueryExplanation(tuple(scans), analyze)


def _of_frame(frame: DataFrame) -> list[Narrowed]:
    found = frames.explained(frame)
    if not found:
        raise UserError(
            "INVALID_ARGUMENT",
            "Spark reads the DataFrame: it is not made of spark.table or spark.sql in a session that mica.enable was "
            "called for, it is cached or few rows, or its rows depend on how they are spread (a limit, a sample, a "
            "random number)",
            hint="mica.explain of an SQL text shows how mica.sql reads it.",
        )
    return found


@dataclass(frozen=True)
class QueryExplanation:
    """One explanation for each place of a table in the query, in the order of Spark's plan."""

    _places: tuple[Narrowed, ...]
    analyze: bool = False

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The scans."""
        return tuple(found.scan for found in self._places)

    def to_dict(self) -> dict[str, Any]:
        """`tables` has for each place: `table` (its path), `name`, `reader` (`mica` or `Spark`), `columns` (what Spark
        gets), `evaluated` (conditions that the scan evaluates), `skipping` (conditions of Spark's by which the scan
        skips), `left` (those of Spark alone: `condition`, `why`), and `scan` as `Explanation.to_dict`."""
        return {
            "tables": [
                {
                    "table": found.table.path,
                    "name": found.view,
                    "reader": found.reader,
                    "columns": list(found.columns),
                    "evaluated": list(found.evaluated),
                    "skipping": list(found.skipping),
                    "left": [{"condition": text, "why": why} for text, why in found.left],
                    "scan": self._explained(found).to_dict(),
                }
                for found in self._places
            ]
        }

    def _explained(self, found: Narrowed) -> Explanation:
        # A comparison by a collation is Spark's: rows cannot be judged in process.
        return Explanation(found.scan, self.analyze and not found.scan.collations)

    def __str__(self) -> str:
        return "\n\n".join(
            "\n".join((*self._lines(found), str(self._explained(found)).rstrip())) for found in self._places
        )

    def _lines(self, found: Narrowed) -> list[str]:
        reader = "mica's kernel" if found.reader == "mica" else "Spark's Parquet reader"
        lines = [f"{found.view}: {found.table.path}, read by {reader}"]
        lines.append(f"  columns: {', '.join(found.columns) or 'none, rows are counted'}")
        for title, texts in (("evaluated by the scan", found.evaluated), ("skips files, then Spark's", found.skipping)):
            lines += [f"  {title}: {text}" for text in texts]
        lines += [f"  left to Spark: {text} ({why})" for text, why in found.left]
        return lines
