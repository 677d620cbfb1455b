"""Parquet files without a log: where they may be written, how, and what was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mica.errors import UserError
from mica.schema.types import VARIANT, StructType, walk
from mica.storage import Storage
from mica.tasks.write import WriteSpec, new_mark
from mica.variant.shredding import Limits, trees_of
from mica.write.facts import Facts

#: How shredded Variants are laid out, and where early files have `untyped_value`.
LAYOUTS = ("standard", "early")


UNTYPED = ("always", "where needed")


@dataclass(frozen=True)
class Written:
    """What was written: the files, and how many rows and bytes they hold."""

    files: tuple[str, ...]
    rows: int
    bytes: int


def empty_folder(path: str, options: Mapping[str, str] | None) -> Storage:
    """The folder of that path. Errors: FILE_EXISTS where it holds files: nobody could tell them from the new ones."""
    storage = Storage.open(path, options)
    if next(iter(storage.list()), None) is not None:
        raise UserError("FILE_EXISTS", f"{path!r} holds files", hint="Name a folder that is empty or new.", path=path)
    return storage


def bare_spec(storage: Storage, schema: StructType, shredding: Any, name: str | None = None) -> WriteSpec:
    """How bare files of these columns are written; `name` is that of the one file, where there is to be one."""
    variants = tuple(at for at, f in walk(schema) if f.type == VARIANT)
    return WriteSpec(
        storage=storage,
        schema=schema,
        variants=variants,
        trees=trees_of(shredding, variants),
        limits=Limits(),
        name=name,
        mark=new_mark(),
        target_file_size=(1 << 62) if name else (128 << 20),
    )


def written(storage: Storage, facts: Facts) -> Written:
    """What the facts of a write say."""
    return Written(files=tuple(map(storage.path, facts.names)), rows=facts.rows, bytes=facts.bytes)
