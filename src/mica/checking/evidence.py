"""What some of a table's files say about the paths of its Variants: the ground of all suggestions.

The rule: footers and the log are read, no rows. Files are taken evenly from the whole table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any

from mica.checking.survey import ColumnPath, evenly, looks
from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.schema.types import BYTE, INTEGER, LONG, SHORT, DataType, variant_columns
from mica.stats import documents
from mica.stats.columns import physical_names
from mica.stats.paths import Value, read_all
from mica.variant.path import VariantPath
from mica.variant.shredding import is_own

#: A path is worth a column if at least this share of the rows have it, and this share of its values has one type.
PRESENT, TYPED = 0.01, 0.9

_INTEGERS: Sequence[DataType] = (BYTE, SHORT, INTEGER, LONG)


@dataclass(frozen=True)
class Suggestion:
    """`value` is what to say, `command` the line that says it; `details` are its parts, each with its figures."""

    kind: str
    value: str
    reason: str
    command: str
    details: Sequence[Mapping[str, Any]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The suggestion as plain values."""
        return asdict(self)


@dataclass
class PathSeen:
    """The rows that have a path of a Variant, by the type that it has there; None where the value is none of it."""

    rows: Counter[DataType | None] = field(default_factory=Counter)
    #: Bytes of its typed values, compressed, and the files that give it a column of each type.
    bytes: int = 0
    files: Counter[DataType] = field(default_factory=Counter)
    #: The least and the greatest value of each file that has bounds in the log.
    ranges: list[tuple[Value, Value]] = field(default_factory=list)

    @property
    def type(self) -> DataType | None:
        """The type of most values; integers of several widths are one type, the widest."""
        known = {type_: count for type_, count in self.rows.items() if type_ is not None and count}
        integers = [type_ for type_ in _INTEGERS if type_ in known]
        if len(integers) > 1:
            known[integers[-1]] = sum(known.pop(type_) for type_ in integers)
        return max(known, key=lambda type_: known[type_], default=None)

    @property
    def total(self) -> int:
        """All rows that have the path."""
        return self.rows.total()

    def share(self, type_: DataType) -> float:
        """The share of the values that have the type."""
        alike = _INTEGERS[: _INTEGERS.index(type_) + 1] if type_ in _INTEGERS else [type_]
        return sum(self.rows[one] for one in alike) / max(self.total, 1)

    @property
    def value_bytes(self) -> float:
        """Bytes of a typed value after encoding and compression: few where values repeat."""
        type_ = self.type
        return self.bytes / max(1, 0 if type_ is None else round(self.share(type_) * self.total))

    @property
    def depth(self) -> float | None:
        """The files whose ranges meet that of a file, on average: 1 if no two meet. None if unknown."""
        if len({low.kind for low, _ in self.ranges}) != 1:
            return None
        ends = [(low.value, high.value) for low, high in self.ranges]
        meets = sum(low <= other_high and other_low <= high for low, high in ends for other_low, other_high in ends)
        return float(meets / len(ends))


@dataclass
class TableEvidence:
    """The files that were looked at."""

    snapshot: Snapshot
    rows: int = 0
    files: int = 0
    paths: dict[ColumnPath, PathSeen] = field(default_factory=dict)

    @property
    def variants(self) -> Sequence[tuple[str, ...]]:
        """The Variant columns."""
        return variant_columns(self.snapshot.schema)

    @property
    def total_files(self) -> int:
        """All files of the table."""
        return int(self.snapshot.files.num_rows)

    def typed(self, least: float = PRESENT) -> Iterator[tuple[ColumnPath, PathSeen, DataType]]:
        """The paths of one type, which a column can have, that at least this share of the rows have, the most frequent
        first."""
        for path, seen in sorted(self.paths.items(), key=lambda item: (-item[1].total, item[0])):
            type_ = seen.type
            if type_ is None or is_own(type_):
                continue
            if seen.total >= least * self.rows and seen.share(type_) >= TYPED:
                yield path, seen, type_


def gather(snapshot: Snapshot) -> TableEvidence:
    """Reads the footers of files from all of the table, and their statistics in the log."""
    found = TableEvidence(snapshot)
    places = evenly(snapshot.files.num_rows)
    texts = snapshot.stats(places).to_pylist() if places else []
    for look, text in zip(looks(snapshot, places), texts, strict=True):
        for path, one in look.paths.items():
            if None in path.steps:
                continue  # the elements of an array have no bounds, and are no column of a table
            seen = found.paths.setdefault(path, PathSeen())
            seen.rows.update({one.type: one.typed_rows, None: one.residual_rows})
            seen.bytes += one.typed_bytes
            seen.files[one.type] += 1
        for path, ends in _ranges(snapshot, text).items():
            if path in found.paths:
                found.paths[path].ranges.append(ends)
        found.rows += look.rows
        found.files += 1
    return found


def _ranges(snapshot: Snapshot, text: str | None) -> dict[ColumnPath, tuple[Value, Value]]:
    """The bounds of the paths of a file's Variants."""
    document, found = documents.read(text), dict[ColumnPath, tuple[Value, Value]]()
    for column in variant_columns(snapshot.schema):
        names = physical_names(snapshot.schema, column)
        low, high = (documents.at(document, (side, *names)) for side in ("minValues", "maxValues"))
        if isinstance(low, str) and isinstance(high, str):
            highs = read_all(high)
            for key, least in read_all(low).items():
                most = highs.get(key)
                if least is not None and most is not None and least.kind == most.kind:
                    found[ColumnPath(column, tuple(map(str, VariantPath.parse_normalized(key).steps)))] = least, most
    return found
