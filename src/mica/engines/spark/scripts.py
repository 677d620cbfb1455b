"""Steps through a SQL script (BEGIN … END) with Spark's own interpreter.

The rule: Spark decides which statement comes next, and what a handler does with an error; who calls runs the statement.
The script's variables are those of this thread meanwhile, so queries see them wherever they are analysed.

Spark has no public door to its interpreter: its steps are methods that only Spark calls. A version without them has no
`Script` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from mica.engines.spark.catalog import parsed
from mica.engines.spark.java import java_class
from mica.engines.spark.jobs import translate
from mica.engines.spark.nodes import items
from mica.engines.spark.session import is_connect
from mica.errors import MicaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PACKAGE = "org.apache.spark.sql.scripting"
#: Where a thread keeps the variables of the script that it runs.
_KEPT = "org$apache$spark$util$LexicalThreadLocal$$tl"

#: Spark's conditions for codes of mica's, of errors that do not name theirs.
_CONDITIONS = {
    "ARITHMETIC_OVERFLOW": "ARITHMETIC_OVERFLOW",
    "DIVIDE_BY_ZERO": "DIVIDE_BY_ZERO",
    "INVALID_ARRAY_INDEX": "INVALID_ARRAY_INDEX",
    "INVALID_CAST": "CAST_INVALID_INPUT",
    "INVALID_JSON": "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
    "TABLE_NOT_FOUND": "TABLE_OR_VIEW_NOT_FOUND",
    "UNKNOWN_COLUMN": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
}
#: One of no condition that mica knows.
_OTHER = "USER_RAISED_EXCEPTION"

#: Runs the text of a statement, or what Spark makes of it: its rows, if they are a result and not a command's.
Runs = Callable[[str, "Callable[[], DataFrame]"], "DataFrame | None"]


class Script:
    """A script that is run once."""

    def __init__(self, spark: Any, body: Any) -> None:
        self._spark = spark
        own, no_values = spark._jsparkSession, self._java("java.util.HashMap")()  # noqa: SLF001
        execution = self._java(f"{_PACKAGE}.SqlScriptingExecution")
        self._execution = execution(
            body, own, self._java("org.apache.spark.api.python.PythonUtils").toScalaMap(no_values)
        )
        self._class = self._execution.getClass()
        self._next = self._method("getNextStatement")
        self._handle = self._method("handleException", "org.apache.spark.SparkThrowable")
        self._kept = _kept(spark)
        self._manager = self._class.getDeclaredField("contextManager")
        self._manager.setAccessible(True)

    @staticmethod
    def of(spark: Any, text: str) -> Script | None:
        """The script of a text; None if this Spark's interpreter cannot be asked. Errors: Spark's, for the syntax."""
        from py4j.protocol import Py4JError

        body = parsed(spark, text)
        try:
            return Script(spark, body)
        except (Py4JError, TypeError):
            return None

    def run(self, statement: Runs, stepping: Callable[[], AbstractContextManager[object]]) -> DataFrame:
        """Runs it; the rows are those of its last result, or none. `stepping` is around what Spark evaluates itself."""
        from pyspark.sql.classic.dataframe import DataFrame

        rows, schema = self._java("java.util.ArrayList")(), self._java("org.apache.spark.sql.types.StructType")()
        with self._variables():
            while True:
                try:
                    with stepping():
                        step = self._invoke(self._next)
                    if step.isEmpty():
                        break
                    found = self._made(step.get(), statement)
                    if found is not None:
                        # All at once, as Spark does: the next statement may change what is read.
                        java = found._jdf  # noqa: SLF001
                        rows, schema = java.collectAsList(), java.schema()
                except Exception as e:  # noqa: BLE001 - a handler of the script may take any
                    self._handled(e)
        return DataFrame(self._spark._jsparkSession.createDataFrame(rows, schema), self._spark)  # noqa: SLF001

    def _made(self, step: Any, statement: Runs) -> DataFrame | None:
        """The result of a statement; None of a command, and of what is no statement or has run as a condition."""
        from pyspark.sql.classic.dataframe import DataFrame

        if str(step.getClass().getName()) != f"{_PACKAGE}.SingleStatementExec" or step.isExecuted():
            return None

        def by_spark() -> DataFrame:
            return DataFrame(step.buildDataFrame(self._spark._jsparkSession), self._spark)  # noqa: SLF001

        if not step.isInternal():
            return statement(str(step.getText()), by_spark)
        by_spark()  # a variable of FOR
        return None

    def _handled(self, error: Exception) -> None:
        """Lets a handler of the script take the error; without one it is raised."""
        try:
            self._invoke(self._handle, self._sparks(error))
        except Exception:  # noqa: BLE001 - the same one: no handler took it
            raise error from None

    def _sparks(self, error: Exception) -> Any:
        """Spark's error for one of Spark or mica: of the condition that a handler may name, else of one that it takes
        for SQLEXCEPTION."""
        from py4j.java_gateway import is_instance_of

        own = error if isinstance(error, MicaError) else translate(error)
        condition = None
        if isinstance(own, MicaError):
            condition = own.context.get("condition") or _CONDITIONS.get(own.code)
        gateway = self._spark.sparkContext._gateway  # noqa: SLF001
        one: BaseException | None = error
        while one is not None:
            java = getattr(one, "_origin", None) or getattr(one, "java_exception", None)
            if (
                java is not None
                and is_instance_of(gateway, java, "org.apache.spark.SparkThrowable")
                and condition in (None, java.getCondition())
            ):
                return java
            one = one.__cause__ or one.__context__
        condition = condition or _OTHER
        values, asked = self._java("java.util.HashMap")(), self._java("org.apache.spark.SparkThrowableHelper")
        for name in items(asked.getMessageParameters(condition)):
            values.put(name, str(error))
        contexts = gateway.new_array(self._java("org.apache.spark.QueryContext"), 0)
        named = self._java("org.apache.spark.api.python.PythonUtils").toScalaMap(values)
        return self._java("org.apache.spark.SparkRuntimeException")(condition, named, None, contexts, "")

    @contextmanager
    def _variables(self) -> Iterator[None]:
        before = self._kept.get()
        self._kept.set(self._manager.get(self._execution))
        try:
            yield
        finally:
            self._kept.set(before)

    def _java(self, name: str) -> Any:
        return java_class(self._spark, name)

    def _method(self, name: str, *types: str) -> Any:
        of_any = self._java("java.lang.Class")
        classes = self._spark.sparkContext._gateway.new_array(of_any, len(types))  # noqa: SLF001
        for number, one in enumerate(types):
            classes[number] = of_any.forName(one)
        found = self._class.getDeclaredMethod(name, classes)
        found.setAccessible(True)
        return found

    def _invoke(self, method: Any, *values: Any) -> Any:
        """The method's result. Errors: its own, as PySpark raises them."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors.exceptions.captured import UnknownException, convert_exception

        given = self._spark.sparkContext._gateway.new_array(self._java("java.lang.Object"), len(values))  # noqa: SLF001
        for number, one in enumerate(values):
            given[number] = one
        try:
            return method.invoke(self._execution, given)
        except Py4JJavaError as e:
            cause = e.java_exception.getCause()
            converted = e if cause is None else convert_exception(cause)
            if isinstance(converted, UnknownException):
                raise
            raise converted from None


def is_command(rows: Any) -> bool:
    """Whether rows are those of a command that has run."""
    return str(rows._jdf.logicalPlan().nodeName()) == "CommandResult"  # noqa: SLF001


def _kept(spark: Any) -> Any:
    """The thread's place for the variables of a script."""
    module = getattr(java_class(spark, "org.apache.spark.sql.catalyst.SqlScriptingContextManager$"), "MODULE$")
    return getattr(module, _KEPT)()


def local_variables(spark: Any) -> set[str]:
    """The variables of the script that this thread runs, alone and behind the label of their block, in lower case."""
    from py4j.protocol import Py4JError

    if is_connect(spark):
        return set()
    try:
        manager = _kept(spark).get()
    except (Py4JError, TypeError):
        return set()
    if manager is None:
        return set()
    found = set[str]()
    for frame in items(manager.getContext().frames().toSeq()):
        for scope in items(frame.scopes().toSeq()):
            for name in map(str, items(scope.variables().keys().toSeq())):
                found |= {name.lower(), f"{scope.label()}.{name}".lower()}
    return found
