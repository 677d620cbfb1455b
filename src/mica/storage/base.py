"""The interface of a storage location, and how a path or URI is opened. The rule: a scheme that is not in the table is
rejected by name."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self, TypeVar

from mica import threads
from mica.arguments import OPTIONS, refuse_other
from mica.errors import MicaError, StorageError, UserError, without_credentials
from mica.storage.options import ALLOW_EXTERNAL, allows_external

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# Spark's spelling → obstore's; None is the local disk. Other schemes are rejected by name.
SCHEMES: Mapping[str, str | None] = {
    "file": None,
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfss",
    "abfss": "abfss",
    "az": "az",
    "azure": "az",
    "adl": "adl",
}


class AlreadyExistsError(StorageError):
    """`put_if_absent` found an existing file: another writer was first, or an earlier attempt of this one succeeded."""


class Entry(NamedTuple):
    """One listed file: its name below the location, its size in bytes, its modification time in ms since the epoch."""

    path: str
    size: int
    modified: int


class Writer(ABC):
    """A file being written: it appears complete on `close`, and not at all after `abort` or an exception in `with`."""

    @abstractmethod
    def write(self, data: bytes, /) -> int: ...
    @abstractmethod
    def close(self) -> None: ...
    @abstractmethod
    def abort(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self.close()
        else:
            self.abort()


class Storage(ABC):
    """One location (such as a table's root) and the files below it; open it with `Storage.open`. Pickles with its
    options."""

    uri: str
    local_path: str | None
    #: Whether a log here may name files outside this bucket or disk; False: none but those below this location.
    external: bool | None = None

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the connection, by obstore's names: secrets among them."""
        return {}

    @staticmethod
    def open(location: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Storage:
        """Opens a location by path or URI. `storage_options` are obstore's (`region`, `access_key_id`, `allow_http`,
        …), also in the spellings of deltalake and Spark (`storage/options.py`); without them those of the running Spark
        session hold (`storage/unsaid.py`)."""
        # Both subclasses import this module, so a top-level import would be circular.
        from mica.storage.local import LocalStorage

        text = os.fspath(location)
        if not text or "\0" in text:
            raise UserError.bad_value("the path", text, "a path or a URI; . is the working directory")
        scheme, rest = split_scheme(text)
        refuse_other("storage_options", storage_options, OPTIONS, optional=True)
        external = allows_external(storage_options)
        if scheme is None:
            return LocalStorage(text, external, storage_options)
        refuse_credentials(scheme, rest)
        if scheme not in SCHEMES:
            raise UserError(
                "UNSUPPORTED_SCHEME",
                f"mica does not support the scheme {scheme!r} of {text!r}",
                hint=f"Supported are plain paths and {', '.join(sorted(SCHEMES))}.",
            )
        if SCHEMES[scheme] is None:
            return LocalStorage(file_uri_path(rest), external, storage_options)
        host, _, prefix = rest.removeprefix("//").partition("/")
        if not rest.startswith("//") or not host:
            raise UserError("INVALID_ARGUMENT", f"{text!r} names no bucket", hint=f"Write {scheme}://bucket/path.")
        from mica.storage.remote import RemoteStorage
        from mica.storage.unsaid import with_unsaid

        options = with_unsaid(storage_options, str(SCHEMES[scheme]))
        return RemoteStorage(f"{scheme}://{host}", prefix, options)

    @property
    def trust(self) -> Mapping[str, str]:
        """The option that says what a log here may name, where it was given."""
        return {} if self.external is None else {ALLOW_EXTERNAL: str(self.external).lower()}

    def each(self, ask: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """What is answered for each item, in their order; several are asked for at once over a network."""
        return threads.each(ask, items) if self.local_path is None else [ask(item) for item in items]

    @abstractmethod
    def like(self, location: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Storage:
        """Another location, with these options; if none of the connection is given, with those of this one's, if they
        are for such a store."""

    @abstractmethod
    def child(self, rel: str) -> Storage:
        """Returns the location `rel` below this one, over the same connection."""

    @abstractmethod
    def read(self, rel: str) -> bytes:
        """Reads the whole file."""

    @abstractmethod
    def read_ranges(self, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Reads the bytes [start, end) of each range; raises if the file is shorter."""

    @abstractmethod
    def read_up_to(self, rel: str, start: int, end: int) -> bytes:
        """Reads the bytes [start, end), or fewer where the file ends before."""

    @abstractmethod
    def read_same(
        self, rel: str, start: int, end: int, tag: str | None, *, size: int | None = None
    ) -> tuple[bytes, str | None]:
        """Reads the bytes [start, end) of the file with this tag, of whichever is there if it is None. Returns the tag
        too: what tells a file from another one under its name (an ETag), None where a store has none. `NOT_FOUND` if
        another file is there now, or one of another `size`."""

    def tag(self, rel: str) -> str | None:  # noqa: ARG002 - for those that know it
        """The tag of a file without reading it, `NOT_FOUND` if it does not exist. None in a store, where reads tell."""
        return None

    @abstractmethod
    def stat(self, rel: str) -> Entry:
        """Returns size and time of a file; `NOT_FOUND` if it does not exist."""

    def size(self, rel: str) -> int:
        """Returns the size in bytes; `NOT_FOUND` if the file does not exist."""
        return self.stat(rel).size

    @abstractmethod
    def list(
        self, prefix: str = "", *, start_after: str | None = None, recursive: bool = True, links: bool = True
    ) -> Iterator[Entry]:
        """Yields the files below the directory `prefix` in the order of their names; none for a missing directory.
        Without `links` those are left out that only a link to another directory leads to: whoever deletes what it finds
        would delete files of others, or its own under another name."""

    def has_files(self) -> bool:
        """Whether there is a file below the location; a store is asked for the first ones alone."""
        return next(self.list(), None) is not None

    def is_behind_link(self, directory: str) -> bool:  # noqa: ARG002 - stores have none
        """Whether a link is on the way to a directory, or it is one."""
        return False

    @abstractmethod
    def put(self, rel: str, data: bytes) -> None:
        """Writes or replaces a file, atomically; durable when it returns."""

    @abstractmethod
    def put_if_absent(self, rel: str, data: bytes) -> None:
        """Creates a file atomically, or raises `AlreadyExistsError`; after any other error the file may exist."""

    @abstractmethod
    def delete(self, rel: str) -> None:
        """Deletes a file; a missing file is not an error."""

    def delete_all(self, rels: Sequence[str]) -> None:
        """Deletes files, several at once, in no order; missing files are not an error. After an error some are left."""
        threads.each(self.delete, rels)

    def discard(self, rels: Iterable[str]) -> None:
        """Deletes unreferenced files, as far as possible. Never pass files of a commit whose outcome is unknown:
        after an error of `put_if_absent` a log may name them.
        """
        self.each(self._discard, rels)

    def _discard(self, rel: str) -> None:
        with contextlib.suppress(MicaError):
            self.delete(rel)

    def clear(self) -> None:
        """Deletes all files below this location, which must be unreferenced, as far as possible."""
        with contextlib.suppress(MicaError):
            self.discard([entry.path for entry in self.list(links=False)])

    def remove(self) -> None:
        """Deletes all files below this location; on a disk the directory, too. After an error some are left."""
        self.delete_all([entry.path for entry in self.list(links=False)])

    def sweep(self, directory: str) -> None:
        """Deletes the partial files that killed writers left directly in a directory, as far as possible."""

    @abstractmethod
    def writer(self, rel: str, *, private: bool = False) -> Writer:
        """Opens a streamed file; multipart on object stores. Only the owner may read a private one."""

    def prepare(self, rel: str) -> None:
        """Creates the directory of a file that another library will write at `path(rel)`."""

    def sync(self, rel: str) -> None:
        """Makes a file that another library wrote to `path(rel)` durable."""

    def exists(self, rel: str) -> bool:
        """Whether the file exists."""
        try:
            self.size(rel)
        except StorageError as error:
            if error.code in ("NOT_FOUND", "NOT_A_DIRECTORY", "IS_A_DIRECTORY"):
                return False
            raise
        return True

    @abstractmethod
    def path(self, rel: str) -> str:
        """Returns the full name of a file: a local path, or a URI as Spark accepts it."""

    @abstractmethod
    def at(self, absolute: str) -> tuple[Storage, str]:
        """Resolves an absolute name (URI or path, decoded) to a location and a name below it."""

    @abstractmethod
    def holds(self, absolute: str) -> bool:
        """Whether an absolute name is on this disk or in this bucket."""

    def at_of_log(self, absolute: str) -> tuple[Storage, str]:
        """Like `at`, for a name from a log. A log is untrusted data: it must not make its reader open other files of
        the reader's disk, or of buckets that the reader's credentials can access. Errors: EXTERNAL_PATH."""
        if not self.external and not self.holds(absolute):
            raise StorageError(
                "EXTERNAL_PATH",
                f"the log of {self} names {absolute}, which is beyond the table's own storage",
                hint="If that is intended, allow it: storage_options={'allow_external_paths': 'true'}.",
                path=absolute,
            )
        found = self.at(absolute)
        if self.external is False:
            self._refuse_outside(absolute, *found)
        return found

    def _refuse_outside(self, name: str, storage: Storage, rel: str) -> None:
        """Refuses a file that is not below this location, where the caller allows no other."""
        if storage is not self or not self.owns(rel):
            raise StorageError(
                "EXTERNAL_PATH",
                f"the log of {self} names {name}, which is outside of the table's folder",
                hint="If that is intended, leave allow_external_paths out of storage_options.",
                path=name,
            )

    def owns(self, rel: str) -> bool:  # noqa: ARG002 - stores have no links
        """Whether a name below this location is not that of a file elsewhere."""
        return True

    def locate(self, name: str) -> tuple[Storage, str]:
        """Resolves a decoded name from a log to a location and a name below it. Errors: EXTERNAL_PATH."""
        if name.startswith("/") or split_scheme(name)[0] is not None:
            return self.at_of_log(name)
        if self.external is False:
            self._refuse_outside(name, self, name)
        return self, name

    def __str__(self) -> str:
        return self.local_path if self.local_path is not None else self.uri

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


def split_scheme(text: str) -> tuple[str | None, str]:
    """`s3a://b/p` → (`s3a`, `//b/p`); a plain path has no scheme."""
    head, colon, rest = text.partition(":")
    if colon and rest.startswith("/") and head.isascii() and head[:1].isalpha():
        legal = all(c.isalnum() or c in "+-." for c in head)
        return (head.lower(), rest) if legal else (None, text)
    return None, text


def refuse_credentials(scheme: str, rest: str) -> None:
    """Rejects a URL with credentials, without quoting them: it would appear in every message, log and history."""
    place, url = rest.lstrip("/"), f"{scheme}:{rest}"
    first = place.partition("/")[0]
    azure = SCHEMES.get(scheme) in ("abfs", "abfss", "az", "azure", "adl")
    local = scheme in SCHEMES and SCHEMES[scheme] is None
    # A password may contain a `/`; a bucket never contains a colon. Only Azure has an @, between container and account.
    named = ("@" in first and not azure) or (":" in first and "@" in place)
    if not local and (named or without_credentials(url) != url):
        raise UserError(
            "INVALID_ARGUMENT",
            f"the URL {scheme}://… holds credentials",
            hint="Give them in storage_options or in the environment.",
        )


def file_uri_path(rest: str) -> str:
    """Returns the local path of a `file:` URI without its scheme."""
    # file:/a, file:///a and file://localhost/a are equal; Hadoop writes the first, Python the second.
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise UserError("UNSUPPORTED_SCHEME", f"file://{host}/… names another host", hint="Give a local path.")
        return "/" + path
    return rest


def split_remote(absolute: str, options: Mapping[str, str] | None) -> tuple[Storage, str]:
    """Splits a URI of another location into its directory and name."""
    head, _, name = absolute.rpartition("/")
    return Storage.open(head, options), name


def another(name: str) -> StorageError:
    """The error for a file that was replaced by another one while it was read."""
    return StorageError("NOT_FOUND", f"{name} is another file by now", hint="Read it again.", path=name)


def too_short(name: str, wanted: int, size: int) -> StorageError:
    """The error for a range beyond the end of a file."""
    return StorageError(
        "FILE_TOO_SHORT",
        f"{name} ends at byte {size}, expected bytes up to {wanted}",
        hint="Restore it: it was truncated or replaced after it was written.",
        path=name,
    )
