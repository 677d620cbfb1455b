"""Writes Parquet files outside of tables: where they may be written, how, and the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mica.arguments import Mode
from mica.engines.base import Engine
from mica.errors import UserError
from mica.log.creation import partition_columns_of
from mica.records import dataclass
from mica.scan.find import data_of
from mica.schema.types import StructType, variant_columns
from mica.storage import Storage
from mica.tasks.shredding import Shredding
from mica.tasks.write import WriteSpec, new_mark, write_files
from mica.variant.wanted import ShreddingWishes
from mica.write import flow
from mica.write.facts import Facts

#: Layouts of shredded Variants, and where early files have `untyped_value`.
LAYOUTS = ("standard", "early")


UNTYPED = ("always", "where needed")


@dataclass(frozen=True)
class Written:
    """The result of a write: the files, and the number of their rows and bytes."""

    files: tuple[str, ...]
    rows: int
    bytes: int


@dataclass(frozen=True)
class Place:
    """The target of a write of bare files: a folder, or one file `name` in it."""

    storage: Storage
    name: str | None = None
    #: Files of the folder to delete after the new ones are written.
    replaced: tuple[str, ...] = ()

    def settle(self) -> None:
        """Deletes the files that the new ones replace. Without a log this is not atomic: a reader in between, or after
        a crash, sees old and new files, and none is lost."""
        for rel in self.replaced:
            self.storage.delete(rel)


def open_place(
    path: str, mode: Mode | None, options: Mapping[str, str] | None, *, single: bool = False
) -> Place | None:
    """The target at `path`; `mode` says what to do with existing files. None if they stay as they are. Without a mode
    a file is replaced, and a folder with files is refused. Errors: FILE_EXISTS.
    """
    head, slash, name = path.rpartition("/") if single else (path, "", "")
    storage = Storage.open(head or slash or ".", options)
    mode = mode or ("overwrite" if single else "error")
    if single and mode == "append":
        raise UserError.bad_value("mode", mode, "'error', 'ignore' or 'overwrite' for a single file")
    there = storage.exists(name) if single else next(iter(storage.list()), None) is not None
    if there and mode == "ignore":
        return None
    if there and mode == "error":
        what, other = ("exists", "file") if single else ("holds files", "folder")
        hint = f"Name another {other}, or use mode= to replace it or to keep it."
        raise UserError("FILE_EXISTS", f"{path!r} {what}", hint=hint, path=path)
    return Place(storage, name or None, _replaced(storage) if mode == "overwrite" and not single else ())


def _replaced(storage: Storage) -> tuple[str, ...]:
    """The files that an overwrite replaces. Those behind a link to a directory are not deleted, and a reader would find
    them beside the new ones: FILE_EXISTS."""
    found = [entry.path for _, entry in data_of((storage, entry) for entry in storage.list())]
    own = set(found) if storage.local_path is None else {entry.path for entry in storage.list(links=False)}
    if linked := [rel for rel in found if rel not in own]:
        path = storage.path(linked[0])
        hint = "Remove the link, or name another folder."
        message = f"{path} is behind a link to a directory: an overwrite would not delete it"
        raise UserError("FILE_EXISTS", message, hint=hint, path=path)
    return tuple(found)


def bare_spec(
    storage: Storage, schema: StructType, shredding: Any, name: str | None = None, partition_by: Sequence[str] = ()
) -> WriteSpec:
    """The write spec of bare files with these columns; `name` is the file's name if there is to be one file.

    Errors: those of `creation.partition_columns_of`.
    """
    variants = variant_columns(schema)
    wanted = ShreddingWishes.of(shredding, variants)
    return WriteSpec(
        storage=storage,
        schema=schema,
        partition_by=tuple(partition_columns_of(schema, partition_by)),
        shredding=Shredding(variants, wanted.trees, wanted.steering),
        name=name,
        mark=new_mark(),
        target_file_size=(1 << 62) if name else (128 << 20),
    )


def write(engine: Engine, spec: WriteSpec, rows: flow.RowSource) -> Facts:
    """Writes the files. Rows that are none become one file, which says what the columns are, as in Spark; in partitions
    there is no place for it."""
    facts = flow.write(engine, spec, rows)
    if facts.names or spec.partition_by:
        return facts
    empty = flow.FromTasks(lambda spec: partial(write_files, replace(spec, even_empty=True)), [[]])
    return flow.write(engine, spec, empty)


def written(storage: Storage, facts: Facts) -> Written:
    """The facts of a write as `Written`."""
    return Written(files=tuple(map(storage.path, facts.names)), rows=facts.rows, bytes=facts.bytes)
