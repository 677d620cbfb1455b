"""Short errors of the data source.

The rule: what Spark calls raises a MicaError without the frames below it. Spark shows the whole traceback of a Python
source, so that the error, which names what was asked and what to do, stood under dozens of lines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from mica.errors import MicaError

P = ParamSpec("P")
R = TypeVar("R")


def brief(method: Callable[P, R]) -> Callable[P, R]:
    """The method, which raises a MicaError from here."""

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except MicaError as error:
            raise error.with_traceback(None) from None

    return called
