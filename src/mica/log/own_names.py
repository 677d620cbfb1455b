"""Whether each column of a table's schema has a name, and under column mapping a place in the files, of its own.

The rule: a schema in which two columns are one is refused wherever it is read, for one of them would get the values of
the other. What only the next writer would trip over, an id twice in a table that is mapped by name, refuses writing
(`mica.log.valid`).

Source: Delta protocol, "Column Mapping"; delta-spark refuses to read names that differ only in case.
"""

from __future__ import annotations

from collections.abc import Sequence

from mica.errors import CorruptDataError
from mica.properties import Mode
from mica.schema.types import StructField
from mica.stats.columns import FIELD_ID, PHYSICAL_NAME

_WAY_OUT = "Restore the table's metadata, or read an older version."


class OwnNames:
    """What is asked for the fields of each struct of one schema."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._ids: dict[int, str] = {}
        #: The names of two fields that have one id, where that does not matter to readers.
        self.twice: tuple[str, str] | None = None

    def check(self, fields: Sequence[StructField]) -> None:
        """Raises `CorruptDataError`, INVALID_SCHEMA_JSON, for the fields of one struct."""
        if len({f.name.lower() for f in fields}) < len(fields):
            seen: dict[str, str] = {}
            for f in fields:
                if (other := seen.setdefault(f.name.lower(), f.name)) != f.name:
                    raise _invalid(f"it has the columns {other!r} and {f.name!r}, which differ only in case", f)
            names = [f.name for f in fields]
            raise next(_invalid(f"it has the column {f.name!r} twice", f) for f in fields if names.count(f.name) > 1)
        if self._mode == "none":
            return
        physical: dict[str, str] = {}
        for f in fields:
            name, number = f.metadata.get(PHYSICAL_NAME), f.metadata.get(FIELD_ID)
            if not isinstance(name, str) or not name:
                raise _invalid(f"the column {f.name!r} has no {PHYSICAL_NAME}, and the table maps its columns", f)
            if (other := physical.setdefault(name, f.name)) != f.name:
                raise _invalid(f"the columns {other!r} and {f.name!r} have one {PHYSICAL_NAME}, {name!r}", f)
            if isinstance(number, int):
                self._check_id(f, number)

    def _check_id(self, f: StructField, number: int) -> None:
        if number not in self._ids:
            self._ids[number] = f.name
            return
        if self._mode == "id":
            raise _invalid(f"the columns {self._ids[number]!r} and {f.name!r} have one {FIELD_ID}, {number}", f)
        self.twice = self.twice or (self._ids[number], f.name)


def _invalid(why: str, f: StructField) -> CorruptDataError:
    return CorruptDataError(
        "INVALID_SCHEMA_JSON", f"the table's schema is invalid: {why}", hint=_WAY_OUT, column=f.name
    )
