"""Finds files by path and pattern, in any location: `*` and `?` within a name, `[…]`, `**` for any directories.

The rule: a pattern means the same on a disk and in an object store, what it means to Python's `glob` (names that begin
with a point are hidden from stars), with `[^…]` as Hadoop has it. Files come in the order of their names. If a file or
folder with exactly that name exists, the text is that name and not a pattern.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from mica.storage.base import Entry, Storage, file_uri_path, refuse_credentials, split_scheme
from mica.storage.local import local_errors

#: A file that was found: the folder or fixed part that was asked for, and the file's name and size below it.
Found = tuple[Storage, Entry]

_SPECIAL = re.compile(r"[*?\[]")


def is_pattern(path: str, options: Mapping[str, str] | None = None) -> bool:
    """Whether the path is a pattern, not the name of a file or folder."""
    scheme, rest = split_scheme(path)
    if scheme is not None:
        refuse_credentials(scheme, rest)
    if _SPECIAL.search(path) is None:
        return False
    if scheme in (None, "file"):
        return not os.path.exists(path if scheme is None else file_uri_path(rest))
    head, _, name = path.rstrip("/").rpartition("/")
    return not Storage.open(head, options).exists(name) and not is_folder(path, options)


def is_folder(path: str, options: Mapping[str, str] | None = None) -> bool:
    """Whether the path is a directory; an object store has none, only names that go on: whether any does."""
    storage = Storage.open(path, options)
    if storage.local_path is not None:
        return os.path.isdir(storage.local_path)
    return storage.has_files()


def fixed_part(pattern: str) -> str:
    """Returns the directory that contains everything a pattern can match."""
    found = _SPECIAL.search(pattern)
    head, slash, _ = (pattern if found is None else pattern[: found.start()]).rpartition("/")
    return head or slash or "."


def files_of(path: str, options: Mapping[str, str] | None = None) -> list[Found]:
    """Returns the file at a path, or those that match a pattern. Errors: NOT_FOUND for a path."""
    if is_pattern(path, options):
        return matching(path, options)
    return [file_at(path, options)]


def file_at(path: str, options: Mapping[str, str] | None = None) -> Found:
    """Returns the file at a path. Errors: NOT_FOUND."""
    head, slash, name = path.rpartition("/")
    if head.endswith(":/"):  # a bucket alone
        head, name = path, ""
    storage = Storage.open(head or slash or ".", options)
    return storage, storage.stat(name)


def matching(pattern: str, options: Mapping[str, str] | None = None) -> list[Found]:
    """Returns the files that match a pattern.

    Errors: PERMISSION_DENIED if there is none and the folder cannot be listed.
    """
    pattern = pattern.replace("[^", "[!")
    scheme, rest = split_scheme(pattern)
    if scheme in (None, "file"):
        local = pattern if scheme is None else file_uri_path(rest)
        head = fixed_part(local)
        storage = Storage.open(head)
        names = [path for path in sorted({*glob.glob(local, recursive=True)}) if not os.path.isdir(path)]
        if not names and os.path.isdir(head):  # `glob` takes a folder that it may not list for an empty one
            with local_errors(head):
                os.scandir(head).close()
        return [(storage, storage.stat(os.path.relpath(path, head))) for path in names]
    return matching_of(pattern, below(fixed_part(pattern), options))


def below(folder: str, options: Mapping[str, str] | None = None) -> list[Found]:
    """Returns all files below a folder."""
    storage = Storage.open(folder, options)
    return [(storage, entry) for entry in storage.list()]


def matching_of(pattern: str, every: Sequence[Found]) -> list[Found]:
    """Returns those of the files below the fixed part of a pattern that match it."""
    wanted = pattern.replace("[^", "[!")[len(fixed_part(pattern)) + 1 :].split("/")
    return [found for found in every if _matches(found[1].path.split("/"), wanted)]


def _matches(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the names of a path are those of a pattern, as `glob` has it."""
    if not names or not wanted:
        return not names and not wanted
    hidden = names[0].startswith(".")
    if wanted[0] != "**":
        seen = not hidden or wanted[0].startswith(".")
        return seen and fnmatchcase(names[0], wanted[0]) and _matches(names[1:], wanted[1:])
    below = not hidden and (wanted == ["**"] if len(names) == 1 else _matches(names[1:], wanted))
    return below or _matches(names, wanted[1:])
