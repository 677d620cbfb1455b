"""Finds classes of a session's JVM by py4j.

The rule: a class is asked for by its whole name, which is one question. A chain of packages is a question for each part
of it, and for each part Java looks in every jar for a class of that name: 2 to 4 ms for a class of Catalyst's.
"""

from __future__ import annotations

from typing import Any


def java_class(spark: Any, name: str) -> Any:
    """A class by its whole name, in the JVM of a session. If there is none, py4j fails where it is used."""
    return getattr(spark.sparkContext._jvm, name)  # noqa: SLF001
