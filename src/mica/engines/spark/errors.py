"""Which errors are Spark's, and of which condition.

The rule: the condition is what PySpark says; the text is read only of errors that have none, such as those that passed
through other hands. Does not import pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

#: An error of mica's in the text of a traceback.
_OURS = re.compile(r"^mica\.errors[\w.]*: (\[[A-Z_0-9]+\] .*)$", re.MULTILINE)


@contextmanager
def reason_first() -> Iterator[None]:
    """Lets an error of PySpark's begin with mica's, which a source raised in a process of its own: its first lines are
    those of a traceback."""
    try:
        yield
    except Exception as e:
        part = "_desc" if getattr(e, "_desc", None) else "_message"  # the latter on Spark Connect; neither is public
        said = str(getattr(e, part, None) or "")
        found = _OURS.search(said) if is_sparks(e) else None
        if found is not None and not said.startswith(found[1]):
            setattr(e, part, f"{found[1]}\n\n{said}")
            # An error of a worker is shown by its parameters.
            told = {**(getattr(e, "getMessageParameters", dict)() or {}), "msg": f"{found[1]}\n\n{said}"}
            if "traceback" in told:
                vars(e)["getMessageParameters"] = lambda: {**told, "traceback": ""}
        raise


def is_sparks(error: BaseException) -> bool:
    """Whether PySpark raised it, or Py4J beneath it."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def is_of_connect(error: BaseException) -> bool:
    """Whether a server of Spark Connect raised it."""
    return type(error).__module__ == "pyspark.errors.exceptions.connect"


def is_condition(error: BaseException, name: str) -> bool:
    """Whether it is of this condition, or of one below it: `UNRESOLVED_COLUMN.WITH_SUGGESTION`."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition is not None:
        return f"{condition}.".startswith(f"{name}.")
    return f"[{name}]" in str(error) or f"[{name}." in str(error)


def may_be_of_row(error: BaseException) -> bool:
    """Whether a row may be what failed, in a task or where Spark evaluates few rows; not that somebody cancelled it."""
    return is_sparks(error) and not is_condition(error, "SPARK_JOB_CANCELLED")


def is_unread(error: BaseException) -> bool:
    """Whether Spark cannot read a text either, or does not know a function of it."""
    return type(error).__name__ == "ParseException" or is_condition(error, "UNRESOLVED_ROUTINE")
