"""A DataFrame whose plan is made when it is first needed.

The rule: its columns are known, and nothing is read before somebody asks for more than these.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.types import StructType, _parse_datatype_json_string

from mica.engines.spark.errors import is_condition
from mica.engines.spark.marks import of_plan
from mica.engines.spark.session import without_sql_log
from mica.engines.spark.types import json_of
from mica.schema.hidden import METADATA


class OfText(DataFrame):
    """What is made of a text. Spark finds columns that the outermost SELECT leaves out, and `_metadata` of its tables;
    narrowed scans read none of these: then it is made of `whole`, an analysed plan over all that the tables have."""

    _whole: Callable[[], Any] | None

    def __new__(cls, *_: Any) -> Self:
        """Spark 4.1's would take a plan and a session only."""
        return object.__new__(cls)

    def __init__(self, java: Any, session: SparkSession, whole: Callable[[], Any] | None = None) -> None:
        super().__init__(java, session)
        self._whole = whole

    def select(self, *cols: Any) -> Any:
        """As Spark's."""
        return self._asked(DataFrame.select, *cols)

    def filter(self, condition: Any) -> Any:
        """As Spark's."""
        return self._asked(DataFrame.filter, condition)

    def sort(self, *cols: Any, **kwargs: Any) -> Any:
        """As Spark's."""
        return self._asked(DataFrame.sort, *cols, **kwargs)

    def selectExpr(self, *expr: Any) -> Any:  # noqa: N802 - Spark's name
        """As Spark's."""
        return self._asked(DataFrame.selectExpr, *expr)

    def withColumn(self, colName: str, col: Any) -> Any:  # noqa: N802, N803 - Spark's names
        """As Spark's: `withColumns` is another method of the JVM."""
        return self._asked(DataFrame.withColumn, colName, col)

    def withColumns(self, *colsMap: Any) -> Any:  # noqa: N802, N803 - Spark's names
        """As Spark's."""
        return self._asked(DataFrame.withColumns, *colsMap)

    def groupBy(self, *cols: Any) -> Any:  # noqa: N802 - Spark's name
        """As Spark's, which looks for the columns when it is told what to make of the groups."""
        own: Any = DataFrame.groupBy
        if self._whole is not None and METADATA in str(cols) and METADATA not in self.columns:
            return own(of_plan(self._session, self._whole()), *cols)
        return own(self, *cols)

    groupby = groupBy
    where = filter  # noqa: A003 - Spark's names
    orderBy = sort  # noqa: N815

    def _asked(self, own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        whole = self._whole
        if whole is None:
            return own(self, *args, **kwargs)

        def of_whole() -> Any:
            return own(of_plan(self._session, whole()), *args, **kwargs)

        try:
            found = own(self, *args, **kwargs)
        except Exception as e:
            if not is_condition(e, "UNRESOLVED_COLUMN"):
                raise
            with suppress(Exception), without_sql_log():  # not there either
                return of_whole()
            raise
        return OfText(found._jdf, self._session, lambda: of_whole()._jdf.queryExecution().analyzed())  # noqa: SLF001


class Deferred(OfText):
    """`schema` is a JVM schema; `make` gives the JVM's Dataset, and takes whether it may read rows at once.

    `plan` gives an analysed plan of the same columns, for whoever runs more than that; `whole` one over all columns of
    the tables, for what asks for some that the text leaves out.
    """

    def __init__(
        self,
        session: SparkSession,
        schema: Any,
        make: Callable[[bool], Any],
        plan: Callable[[], Any] | None = None,
        whole: Callable[[], Any] | None = None,
    ) -> None:
        self._java_schema, self._make, self._made, self._plan = schema, make, None, plan
        super().__init__(None, session, whole)

    @property
    def _jdf(self) -> Any:
        if self._made is None:
            self._made = self._make(True)
        return self._made

    @_jdf.setter
    def _jdf(self, java: Any) -> None:
        self._made = java

    @property
    def schema(self) -> StructType:
        """The columns."""
        found = _parse_datatype_json_string(json_of(self._java_schema))
        assert isinstance(found, StructType)
        return found

    def then(self, change: Callable[[Any], Any]) -> Deferred:
        """What becomes of the JVM's Dataset, with the same columns."""
        return Deferred(self._session, self._java_schema, lambda at_once: change(self._make(at_once)))

    def unmade(self) -> Any:
        """The DataFrame of the other plan, if there is one, and this one's is not made yet."""
        return None if self._plan is None or self._made is not None else of_plan(self._session, self._plan())

    def unread(self) -> DataFrame:
        """The same, for a view: its rows are read when somebody asks the view for them."""
        return DataFrame(self._make(False), self._session)
