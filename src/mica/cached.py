"""`cached_property` as in the standard library of Python 3.12: no object waits for the value of another one.

Before 3.12 a lock is held while a value is made, one for all objects of a class: a scan that waits for a slow store
would stop every other scan of the process, of whatever table. Two threads that ask one object at once may both make the
value; both get the one that was there first.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - named like the one that it stands for
        """`functools.cached_property`."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            made = vars(instance)
            if self.attrname not in made:
                made.setdefault(self.attrname, self.func(instance))
            return made[self.attrname]
