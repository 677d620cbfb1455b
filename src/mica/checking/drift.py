"""How the shape of a table's Variants has changed: between files up to a version and files after it.

The rule: footers and the log alone are read. A path is known where files give it a column, so a path that is too rare
to be one is not seen; an example is a bound, which the log has, but not of the elements of arrays. Files are taken
evenly from both sides.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mica import compute as pc
from mica.arguments import COUNT, OPTIONS, TABLE, takes
from mica.arrays import to_numpy
from mica.checking.survey import ColumnPath, Look, evenly, looks
from mica.errors import UserError
from mica.log.listing import list_log
from mica.log.opened import Opened, table_of
from mica.log.shares import parsed
from mica.log.snapshot import Snapshot
from mica.pictures.paged import Paged
from mica.records import dataclass
from mica.schema.ddl import type_to_ddl
from mica.schema.types import VARIANT, DataType
from mica.stats import documents
from mica.stats.columns import physical_names
from mica.stats.paths import read_all
from mica.variant.shredding import is_own
from mica.variant.tree_path import normalized

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from mica.pictures.page import Html

#: At most so many commits are read for the versions of files.
COMMITS = 10_000

#: A path's residual has drifted if this much more of its values are of another type than before.
MORE = 0.1

#: A path keeps its type if at least this share of its values have it.
HALF = 0.5

DriftKind = Literal["new", "vanished", "unshredded", "type", "residual"]
KINDS: tuple[DriftKind, ...] = ("new", "vanished", "unshredded", "type", "residual")


@dataclass(frozen=True)
class PathDrift:
    """A path that changed: `new`, `vanished` (no row of the files that are looked at has it), `unshredded` (it has no
    column any more, but rows may have it, in a residual or as an object), its `type`, or more values of other types
    (`residual`).

    `before` and `after` are its types (None: not there); `typed_before` and `typed_after` the shares of its values that
    have them. `file`, `version` (None: unknown) and `time` (ms since 1970) are of the first file that shows the change;
    `example` is a value there, as text (None: no bounds).
    """

    path: str
    kind: DriftKind
    before: str | None
    after: str | None
    typed_before: float | None
    typed_after: float | None
    file: str
    version: int | None
    time: int
    example: str | None


@dataclass(frozen=True)
class Moment:
    """A file on the way: its version (None: unknown), time (ms), rows, share of typed values, bytes of residuals."""

    file: str
    version: int | None
    time: int
    rows: int
    typed: float
    residual_bytes: int
    bytes: int


@dataclass(frozen=True)
class Drift(Paged):
    """What changed after version `since`, and how files look over time. `residual_bytes` of the files that were looked
    at are the most that another shredding schema could turn into columns."""

    table: str
    version: int
    since: int | None
    files: int
    total_files: int
    paths: Sequence[PathDrift] = field(default_factory=list)
    moments: Sequence[Moment] = field(default_factory=list)

    @property
    def residual_bytes(self) -> int:
        """The bytes of the residuals in the files that were looked at."""
        return sum(moment.residual_bytes for moment in self.moments)

    @property
    def rules(self) -> str:
        """Rules for `mica.shredding` that follow: new paths and new types as columns of their type, and no type where
        most values have another. No rule can ask for TIME and its like: samples do."""
        wishes = ((one, "VARIANT" if (one.typed_after or 0) < HALF else one.after) for one in self.paths if one.after)
        return ", ".join(f"{one.path}: {wish}" for one, wish in wishes if not is_own(wish))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {**asdict(self), "residual_bytes": self.residual_bytes, "rules": self.rules}

    def title(self) -> str:
        """The table and its version."""
        return f"{self.table}, version {self.version}"

    def _page(self) -> Html:
        from mica.pictures.page import bar, code, fragment, heading, paragraph, table

        rows = [(code(path), *others, first.replace(" ", "\xa0"), one) for path, *others, first, one in self._rows()]
        parts = [paragraph(line) for line in self._notes()]
        parts += [heading("Paths that changed"), table(NAMES, rows)] if rows else []
        moments = [
            (
                "" if m.version is None else m.version,
                f"{m.rows:,}",
                f"{m.typed:.1%}",
                bar(m.typed, 1),
                f"{m.residual_bytes:,}",
            )
            for m in self.moments
        ]
        names = ("version", "rows", "typed", " ", "residual bytes")
        parts += [
            heading("Files over time"),
            table(names, moments, right=("version", "rows", "typed", "residual bytes")),
        ]
        return fragment(self.title(), parts)

    def _notes(self) -> Iterator[str]:
        of = f"{self.files:,} of {self.total_files:,} files were looked at"
        yield of if self.since is None else f"{of}; those after version {self.since} are held against those before"
        size = sum(moment.bytes for moment in self.moments)
        of = f"{self.residual_bytes:,} of {size:,} bytes"
        yield f"{of} are values without a column (residual); reshred can move at most these"
        if not self.paths:
            yield "no path has changed"
        if any(path.kind == "unshredded" for path in self.paths):
            yield "unshredded paths have no column any more; rows may still have them, most often in the residual"
        if self.rules:
            yield f"rules that follow, for mica.shredding: {self.rules}"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for path in self.paths:
            before, after = (
                "" if type_ is None else f"{type_} ({share:.1%})"
                for type_, share in ((path.before, path.typed_before), (path.after, path.typed_after))
            )
            first = path.file if path.version is None else f"version {path.version}"
            yield path.path, path.kind, before, after, first, path.example or ""

    def __str__(self) -> str:
        lines = [self.title(), *(f"  {line}" for line in self._notes())]
        for path, kind, before, after, first, example in self._rows():
            types = " -> ".join(filter(None, (before, after)))
            lines.append(f"  {kind} {path}: {types}, since {first}{f', such as {example}' if example else ''}")
        return "\n".join(lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        yield Text(self.title(), style="bold")
        for line in self._notes():
            yield Text(f"  {line}")
        if self.paths:
            shown = Table(box=None, pad_edge=False, header_style="bold")
            for name in NAMES:
                shown.add_column(name, overflow="fold")
            for row in self._rows():
                shown.add_row(*map(Text, row))
            yield shown


NAMES = ("path", "change", "before", "after", "since", "example")


@dataclass(frozen=True)
class _File:
    """A file that was looked at."""

    place: int
    name: str
    version: int | None
    time: int
    look: Look


@takes(table=TABLE, since=COUNT, storage_options=OPTIONS)
def drift(
    table: str | os.PathLike[str] | Opened,
    since: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Drift:
    """Compares the Variants in files that came after version `since` with those in files before; None: about the older
    half of the files with the newer one, parted between two versions. Files of one version came at once, in no order:
    nothing drifts among them. At most 64 footers are read, and commits for the versions of files.

    Errors: those of `Table.open`; INVALID_ARGUMENT if no file is older or none newer than `since`.
    """
    snapshot = table_of(table, storage_options)
    files = snapshot.files
    versions = _versions(snapshot)
    times = to_numpy(pc.fill_null(files.column("modification_time"), 0))
    order = np.lexsort((times, versions))
    older = _parting(versions[order], times[order]) if since is None else int((versions <= since).sum())
    if since is not None and len(order) and older in (0, len(order)):
        side = "no file is older" if older == 0 else "no file is newer"
        raise UserError("INVALID_ARGUMENT", f"{side} than version {since}", hint="Name another version with since.")
    names = files.column("path")

    def looked(places: np.ndarray) -> list[_File]:
        found = []
        chosen = [int(places[at]) for at in evenly(len(places))]
        for place, look in zip(chosen, looks(snapshot, chosen), strict=True):
            name, version = names[place].as_py(), int(versions[place])
            known = None if version < 0 else version
            found.append(_File(place, name, known, int(times[place]), look))
        return found

    before, after = looked(order[:older]), looked(order[older:])
    paths = sorted(_changes(snapshot, before, after), key=lambda one: (KINDS.index(one.kind), one.path))
    sizes = files.column("size")
    moments = [_moment(file, sizes[file.place].as_py()) for file in (*before, *after)]
    return Drift(str(snapshot.storage), snapshot.version, since, len(moments), len(order), paths, moments)


def _parting(versions: np.ndarray, times: np.ndarray) -> int:
    """Where files in order part into halves, between two versions (times, where those are unknown); 0: nowhere."""
    parts = np.diff(versions) + np.where(versions[1:] < 0, np.diff(times), 0)
    between = np.flatnonzero(parts) + 1
    return int(between[np.abs(2 * between - len(versions)).argmin()]) if len(between) else 0


def _versions(snapshot: Snapshot) -> np.ndarray:
    """The version that added each file; -1 where its commit is gone, or too far back."""
    commits = list_log(snapshot.storage).commits
    kept = sorted(version for version in commits if version <= snapshot.version)[-COMMITS:]
    found: dict[str, int] = {}
    start = 0
    for share, actions, places in parsed(snapshot.storage, [commits[version] for version in kept], []):
        versions = np.array(kept)[start + places[actions.add_rows]]
        found.update(zip(actions.adds.column("path").to_pylist(), versions.tolist(), strict=True))
        start += len(share)
    return np.array([found.get(path, -1) for path in snapshot.files.column("path").to_pylist()], np.int64)


def _moment(file: _File, size: int) -> Moment:
    typed = sum(path.typed_rows for path in file.look.paths.values())
    other = sum(path.residual_rows for path in file.look.paths.values())
    share = typed / (typed + other) if typed + other else 1.0
    return Moment(file.name, file.version, file.time, file.look.rows, round(share, 4), file.look.residual_bytes, size)


@dataclass
class _Side:
    """A path on one side: its rows by type."""

    types: Counter[DataType] = field(default_factory=Counter)
    other: int = 0

    @property
    def type(self) -> DataType | None:
        """The type of most values; None if no row has the path."""
        known = +self.types
        return known.most_common(1)[0][0] if known else None

    @property
    def typed(self) -> float | None:
        """The share of the values that have it."""
        total = self.types.total() + self.other
        return None if not total else round(max(self.types.values(), default=0) / total, 4)


def _sides(files: Sequence[_File]) -> dict[ColumnPath, _Side]:
    found: dict[ColumnPath, _Side] = {}
    for file in files:
        for path, rows in file.look.paths.items():
            side = found.setdefault(path, _Side())
            side.types[rows.type] += rows.residual_rows if rows.type == VARIANT else rows.typed_rows
            side.other += 0 if rows.type == VARIANT else rows.residual_rows
    return {path: side for path, side in found.items() if side.typed is not None}


def _changes(snapshot: Snapshot, before: Sequence[_File], after: Sequence[_File]) -> Iterator[PathDrift]:
    """Without files on one side nothing has changed."""
    if not before or not after:
        return
    olds, news = _sides(before), _sides(after)
    for path in olds.keys() | news.keys():
        old, new = olds.get(path), news.get(path)
        if old is None:
            yield _drifted(snapshot, path, "new", old, new, _first(after, path, None))
        elif new is None:
            gone = next((file for file in after if path not in file.look.paths), after[0])
            kind: DriftKind = "unshredded" if any(file.look.may_have(path) for file in after) else "vanished"
            yield _drifted(snapshot, path, kind, old, new, gone)
        elif old.type != new.type:
            yield _drifted(snapshot, path, "type", old, new, _first(after, path, old.type))
        elif (old.typed or 0) - (new.typed or 0) > MORE:
            yield _drifted(snapshot, path, "residual", old, new, _first(after, path, None, residual=True))


def _first(files: Sequence[_File], path: ColumnPath, unlike: DataType | None, *, residual: bool = False) -> _File:
    """The first file that has the path, with another type or with a residual if asked for."""
    for file in files:
        rows = file.look.paths.get(path)
        if rows is None or (residual and not rows.residual_rows) or not rows.typed_rows + rows.residual_rows:
            continue
        if unlike is None or rows.type != unlike:
            return file
    return files[0]


def _drifted(
    snapshot: Snapshot, path: ColumnPath, kind: DriftKind, old: _Side | None, new: _Side | None, file: _File
) -> PathDrift:
    return PathDrift(
        path=str(path),
        kind=kind,
        before=_type(old),
        after=_type(new),
        typed_before=None if old is None else old.typed,
        typed_after=None if new is None else new.typed,
        file=file.name,
        version=file.version,
        time=file.time,
        example=None if new is None else _example(snapshot, path, file),
    )


def _type(side: _Side | None) -> str | None:
    return None if side is None or side.type is None else type_to_ddl(side.type)


def _example(snapshot: Snapshot, path: ColumnPath, file: _File) -> str | None:
    """The smallest value of a path in a file, as the log has it."""
    document = documents.read(snapshot.stats([file.place])[0].as_py())
    text = documents.at(document, ("minValues", *physical_names(snapshot.schema, path.column)))
    found = read_all(text).get(normalized(path.steps)) if isinstance(text, str) else None
    return None if found is None else str(found.value)
