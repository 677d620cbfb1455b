"""The table of functions (`functions`), imported with the first call: a plain read only binds and evaluates columns."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mica.expressions.functions import ALIASES, FUNCTIONS, pattern_of

__all__ = ["ALIASES", "FUNCTIONS", "pattern_of"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    globals()[name] = found = getattr(import_module("mica.expressions.functions"), name)
    return found
