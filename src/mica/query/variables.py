"""Puts the values of variables (`${name}`) into a text.

The rule: as Spark's parser does before it reads a text: everywhere, in strings and comments too. A name is a setting of
the session, and one that is not set has the empty text; `${env:NAME}` and `${system:name}` are those of the JVM, and
stay where it has none.

Source: Spark's `VariableSubstitution` and `ConfigReader` (`spark.sql.variable.substitute`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mica.engines.spark.java import java_class
from mica.engines.spark.session import is_connect, is_true
from mica.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARIABLE = re.compile(r"\$\{(?:(\w+?):)?(\S+?)\}", re.ASCII)
#: What stands before the name of a setting.
_SETTINGS = frozenset({None, "spark", "sparkconf", "hivevar", "hiveconf"})
_JVMS = {"env": "getenv", "system": "getProperty"}


def substituted(text: str, spark: SparkSession, within: tuple[str, ...] = ()) -> str:
    """The text with values, in which variables have theirs. Errors: INVALID_ARGUMENT for one within itself."""
    if "${" not in text or not is_true(spark, "spark.sql.variable.substitute", "true"):
        return text

    def value(found: re.Match[str]) -> str:
        if found[0] in within:
            raise UserError(
                "INVALID_ARGUMENT",
                f"the value of {found[0]} holds {found[0]} itself",
                hint="Change it, or set spark.sql.variable.substitute to false.",
            )
        given = _value(spark, *found.groups())
        return found[0] if given is None else substituted(given, spark, (*within, found[0]))

    return _VARIABLE.sub(value, text)


def _value(spark: Any, kind: str | None, name: str) -> str | None:
    if kind in _SETTINGS:
        return str(spark.conf.get(name, ""))
    if kind in _JVMS and not is_connect(spark):
        given = getattr(java_class(spark, "java.lang.System"), _JVMS[kind])(name)
        return None if given is None else str(given)
    return None


def refuse_the_servers(text: str, spark: SparkSession) -> None:
    """Refuses a statement with variables that only the server of Spark Connect knows.

    Errors: UNSUPPORTED_EXPRESSION.
    """
    found = next((one for one in _VARIABLE.finditer(text) if one[1] in _JVMS), None) if is_connect(spark) else None
    if found is not None and is_true(spark, "spark.sql.variable.substitute", "true"):
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            f"{found[0]} is known to the server of Spark Connect, and mica runs the statement here",
            hint="Write the value, give it in `args`, or set a setting of the session: ${name}.",
        )
