"""Bytes by name: the one door to disks and object stores.

The rule: nothing else in mica opens a table's files in Python, and no secret that comes in here ever goes out again in a
text. Object stores are reached through obstore. Local disks are reached directly, because obstore's local store neither
syncs what it wrote nor takes every legal file name (`name#1`, line breaks, empty segments); an atomic create is a hard
link there too, so both kinds of writer may meet in one table.

Names below a location are plain text with `/` between segments, never percent-encoded: `log.paths` decodes the URIs of
the log. As in Spark, a `file:` URI is not decoded either.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from mica.errors import StorageError, UserError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# Spark's spelling → obstore's; None is the local disk. What is not here is refused by name.
SCHEMES: Mapping[str, str | None] = {
    "file": None,
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfss",
    "az": "az",
    "azure": "azure",
    "adl": "adl",
}

# Options that configure the connection instead of the store.
_CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "timeout",
    }
)

_ERRNO_CODES: Mapping[int, tuple[str, str, str]] = {
    errno.ENOENT: ("NOT_FOUND", "does not exist", "Check the path."),
    errno.EISDIR: ("IS_A_DIRECTORY", "is a directory where a file is needed", "Name a file."),
    errno.ENOTDIR: (
        "NOT_A_DIRECTORY",
        "is a file, or lies below one, where a directory is needed",
        "Name a directory.",
    ),
    errno.EACCES: ("PERMISSION_DENIED", "may not be accessed by this user", "Change its permissions or the user."),
    errno.EPERM: ("PERMISSION_DENIED", "may not be accessed by this user", "Change its permissions or the user."),
    errno.EROFS: ("PERMISSION_DENIED", "lies on a read-only file system", "Write elsewhere."),
    errno.ENOSPC: ("DISK_FULL", "could not be written: no space left on the device", "Free some space and try again."),
    errno.EDQUOT: ("DISK_FULL", "could not be written: the disk quota is used up", "Free some space and try again."),
    errno.EFBIG: ("DISK_FULL", "could not be written: the file is larger than allowed", "Raise the limit."),
    errno.ENAMETOOLONG: ("INVALID_NAME", "is a name longer than the file system takes", "Use a shorter name."),
    errno.EMFILE: ("TOO_MANY_FILES", "could not be opened: too many open files", "Raise `ulimit -n`."),
}


class AlreadyExistsError(StorageError):
    """`put_if_absent` found something under that name: another writer was first, or this one was before."""


class Entry(NamedTuple):
    """One listed file: its name below the location, its size in bytes, its modification time in ms since the epoch."""

    path: str
    size: int
    modified: int


class Writer(Protocol):
    """A file in the making: it appears whole on `close`, and not at all after `abort` or an exception in `with`."""

    def write(self, data: bytes, /) -> int: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...


class Storage(ABC):
    """One location (a table's root, say) and the files below it; make it with `Storage.open`. It pickles with its options."""

    uri: str
    local_path: str | None

    @staticmethod
    def open(location: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Storage:
        """A location by path or URI. `storage_options` are obstore's (`region`, `access_key_id`, `allow_http`, …)."""
        text = os.fspath(location)
        scheme, rest = split_scheme(text)
        if scheme is None:
            return LocalStorage(text)
        if scheme not in SCHEMES:
            raise UserError(
                "UNSUPPORTED_SCHEME",
                f"{text!r} is on {scheme!r}, which mica cannot reach",
                hint=f"Supported are plain paths and {', '.join(sorted(SCHEMES))}.",
            )
        if SCHEMES[scheme] is None:
            return LocalStorage(_file_uri_path(rest))
        host, _, prefix = rest.removeprefix("//").partition("/")
        if not rest.startswith("//") or not host:
            raise UserError("INVALID_ARGUMENT", f"{text!r} names no bucket", hint=f"Write {scheme}://bucket/path.")
        return RemoteStorage(f"{scheme}://{host}", prefix, storage_options)

    @abstractmethod
    def child(self, rel: str) -> Storage:
        """The location `rel` below this one, over the same connection."""

    @abstractmethod
    def read(self, rel: str) -> bytes:
        """The whole file."""

    @abstractmethod
    def read_ranges(self, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes [start, end) of each range; an error when the file is shorter than a range says."""

    @abstractmethod
    def size(self, rel: str) -> int:
        """The size in bytes; `NOT_FOUND` when there is no such file."""

    @abstractmethod
    def list(self, prefix: str = "", *, start_after: str | None = None, recursive: bool = True) -> Iterator[Entry]:
        """The files below the directory `prefix` in the order of their names; a missing directory lists nothing."""

    @abstractmethod
    def put(self, rel: str, data: bytes) -> None:
        """Writes or replaces a file, atomically; durable when it returns."""

    @abstractmethod
    def put_if_absent(self, rel: str, data: bytes) -> None:
        """Creates a file atomically, or raises `AlreadyExistsError`; after any other error either may have happened."""

    @abstractmethod
    def delete(self, rel: str) -> None:
        """Removes a file; one that is not there is no error."""

    @abstractmethod
    def writer(self, rel: str) -> Writer:
        """A streamed file; multipart on object stores."""

    def sync(self, rel: str) -> None:
        """Makes a file that another library wrote to `path(rel)` durable."""

    def exists(self, rel: str) -> bool:
        """Whether there is such a file."""
        try:
            self.size(rel)
        except StorageError as error:
            if error.code in ("NOT_FOUND", "NOT_A_DIRECTORY", "IS_A_DIRECTORY"):
                return False
            raise
        return True

    @abstractmethod
    def path(self, rel: str) -> str:
        """The full name of a file: a local path, or a URI as Spark takes it."""

    @abstractmethod
    def at(self, absolute: str) -> tuple[Storage, str]:
        """Where an absolute name (URI or path, decoded) lies: a location and a name below it."""

    def __str__(self) -> str:
        return self.local_path if self.local_path is not None else self.uri

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


def split_scheme(text: str) -> tuple[str | None, str]:
    """`s3a://b/p` → (`s3a`, `//b/p`); a plain path has no scheme."""
    head, colon, rest = text.partition(":")
    legal = head.isascii() and head[:1].isalpha() and all(c.isalnum() or c in "+-." for c in head)
    if colon and legal and rest.startswith("/"):
        return head.lower(), rest
    return None, text


def _file_uri_path(rest: str) -> str:
    # file:/a, file:///a and file://localhost/a are one; Hadoop writes the first, Python the second.
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise UserError("UNSUPPORTED_SCHEME", f"file://{host}/… names another host", hint="Give a local path.")
        return "/" + path
    return rest


class LocalStorage(Storage):
    """A directory of this machine, through the operating system."""

    def __init__(self, directory: str) -> None:
        # Tasks may run in another working directory: the path is made absolute once, here.
        self.local_path = os.path.abspath(directory)
        self.uri = "file://" + self.local_path

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStorage, (self.local_path,)

    def path(self, rel: str) -> str:
        assert self.local_path is not None
        if "\0" in rel or ".." in rel.split("/"):
            raise StorageError("INVALID_NAME", f"{rel!r} is no name below {self.local_path}", hint="Check the log.")
        return os.path.join(self.local_path, rel) if rel else self.local_path

    def child(self, rel: str) -> Storage:
        return LocalStorage(self.path(rel))

    def at(self, absolute: str) -> tuple[Storage, str]:
        scheme, rest = split_scheme(absolute)
        if scheme not in (None, "file"):
            return _split_remote(absolute, None)
        full = os.path.normpath(absolute if scheme is None else _file_uri_path(rest))
        assert self.local_path is not None
        below = self.local_path.rstrip("/") + "/"
        if full.startswith(below):
            return self, full[len(below) :]
        return LocalStorage(os.path.dirname(full)), os.path.basename(full)

    def read(self, rel: str) -> bytes:
        path = self.path(rel)
        with _local_errors(path), open(path, "rb") as file:
            return file.read()

    def read_ranges(self, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        path = self.path(rel)
        with _local_errors(path), open(path, "rb") as file:
            out = []
            for start, end in ranges:
                data = os.pread(file.fileno(), end - start, start)
                while len(data) < end - start:
                    more = os.pread(file.fileno(), end - start - len(data), start + len(data))
                    if not more:
                        raise _too_short(path, end, os.fstat(file.fileno()).st_size)
                    data += more
                out.append(data)
            return out

    def size(self, rel: str) -> int:
        path = self.path(rel)
        with _local_errors(path):
            info = os.stat(path)
            if stat.S_ISDIR(info.st_mode):
                raise IsADirectoryError(errno.EISDIR, "directory")
            return info.st_size

    def list(self, prefix: str = "", *, start_after: str | None = None, recursive: bool = True) -> Iterator[Entry]:
        prefix = prefix.rstrip("/")
        names: list[tuple[str, os.DirEntry[str]]] = []
        todo = [prefix]
        while todo:
            directory = todo.pop()
            path = self.path(directory)
            head = directory + "/" if directory else ""
            try:
                with _local_errors(path), os.scandir(path) as found:
                    for item in found:
                        if not item.is_dir():
                            if start_after is None or head + item.name > start_after:
                                names.append((head + item.name, item))
                        elif recursive:
                            todo.append(head + item.name)
            except StorageError as error:
                if error.code != "NOT_FOUND":
                    raise
        names.sort(key=lambda pair: pair[0])
        for rel, item in names:
            try:
                info = item.stat()
            except FileNotFoundError:
                continue  # deleted since the directory was read
            yield Entry(rel, info.st_size, info.st_mtime_ns // 1_000_000)

    def put(self, rel: str, data: bytes) -> None:
        path = self.path(rel)
        with _local_errors(path), self._staged(path, data) as staged:
            os.replace(staged, path)
            _sync_directory(os.path.dirname(path))

    def put_if_absent(self, rel: str, data: bytes) -> None:
        path = self.path(rel)
        try:
            with _local_errors(path), self._staged(path, data) as staged:
                os.link(staged, path)
                _sync_directory(os.path.dirname(path))
        except FileExistsError:
            raise AlreadyExistsError("ALREADY_EXISTS", f"{path} exists already") from None

    @contextlib.contextmanager
    def _staged(self, path: str, data: bytes) -> Iterator[str]:
        """A synced file beside `path`, under a short hidden name that no reader looks at."""
        writer = _LocalWriter(path)
        try:
            writer.write(data)
            yield writer.seal()
        finally:
            writer.abort()

    def delete(self, rel: str) -> None:
        path = self.path(rel)
        with _local_errors(path), contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def writer(self, rel: str) -> Writer:
        path = self.path(rel)
        with _local_errors(path):
            return _LocalWriter(path)

    def sync(self, rel: str) -> None:
        path = self.path(rel)
        with _local_errors(path):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _sync_directory(os.path.dirname(path))


class _LocalWriter:
    def __init__(self, path: str) -> None:
        self._path = path
        self._staged: str | None = os.path.join(os.path.dirname(path), f".{uuid.uuid4().hex}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._descriptor = os.open(self._staged, flags, 0o666)
        except FileNotFoundError:
            _make_directories(os.path.dirname(path))
            self._descriptor = os.open(self._staged, flags, 0o666)

    def write(self, data: bytes, /) -> int:
        view = memoryview(data).cast("B")
        with _local_errors(self._path):
            while view:
                view = view[os.write(self._descriptor, view) :]
        return len(data)

    def seal(self) -> str:
        """Syncs and closes the staged file, and gives its name."""
        assert self._staged is not None
        os.fsync(self._descriptor)
        self._close()
        return self._staged

    def close(self) -> None:
        if self._staged is None:
            return
        try:
            with _local_errors(self._path):
                os.replace(self.seal(), self._path)
                self._staged = None
                _sync_directory(os.path.dirname(self._path))
        finally:
            self.abort()

    def abort(self) -> None:
        self._close()
        if self._staged is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._staged)
            self._staged = None

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self.close()
        else:
            self.abort()


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_directories(path: str) -> None:
    # A new directory is durable only when its parent is synced, so each level is.
    if not os.path.isdir(path):
        _make_directories(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        _sync_directory(os.path.dirname(path))


def _too_short(name: str, wanted: int, size: int) -> StorageError:
    return StorageError(
        "FILE_TOO_SHORT",
        f"{name} ends at byte {size}, where bytes up to {wanted} were expected",
        hint="The file was cut short or replaced after it was written.",
        path=name,
    )


@contextlib.contextmanager
def _local_errors(path: str) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        known = _ERRNO_CODES.get(error.errno or 0)
        if known is None:
            raise StorageError("IO", f"{path}: {error.strerror or error}", path=path) from error
        code, says, hint = known
        raise StorageError(code, f"{path} {says}", hint=hint, path=path) from error


def _split_remote(absolute: str, options: Mapping[str, str] | None) -> tuple[Storage, str]:
    head, _, name = absolute.rpartition("/")
    return Storage.open(head, options), name


class RemoteStorage(Storage):
    """A prefix of a bucket or container, through obstore. The connection is made on first use, never before a fork."""

    local_path = None

    def __init__(
        self,
        root: str,
        prefix: str,
        options: Mapping[str, str] | None = None,
        store: ObjectStore | None = None,
    ) -> None:
        self._root = root
        self._prefix = prefix.strip("/")
        self._options = dict(options or {})
        self._store = store
        self.uri = f"{root}/{self._prefix}" if self._prefix else root

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStorage, (self._root, self._prefix, self._options)

    def path(self, rel: str) -> str:
        return f"{self.uri}/{rel}" if rel else self.uri

    def _key(self, rel: str) -> str:
        return "/".join(part for part in (self._prefix, rel) if part)

    def child(self, rel: str) -> Storage:
        return RemoteStorage(self._root, self._key(rel), self._options, self._open())

    def at(self, absolute: str) -> tuple[Storage, str]:
        if absolute.startswith("/"):
            return RemoteStorage(self._root, "", self._options, self._store), absolute.lstrip("/")
        scheme, rest = split_scheme(absolute)
        host, _, key = rest.removeprefix("//").partition("/")
        mine, _, my_host = self._root.partition("://")
        if SCHEMES.get(scheme or "") == SCHEMES.get(mine) and host == my_host:
            if key.startswith(self._prefix + "/") or not self._prefix:
                return self, key[len(self._prefix) :].lstrip("/")
            return RemoteStorage(self._root, "", self._options, self._store), key
        return _split_remote(absolute, self._options)

    def _open(self) -> ObjectStore:
        if self._store is None:
            import obstore.store

            scheme, _, host = self._root.partition("://")
            client = {k: v for k, v in self._options.items() if k in _CLIENT_OPTIONS}
            config = {k: v for k, v in self._options.items() if k not in _CLIENT_OPTIONS}
            with self._errors(""):
                self._store = obstore.store.from_url(
                    f"{SCHEMES[scheme]}://{host}",
                    config=config,  # type: ignore[call-overload]
                    client_options=_typed(client),
                )
        assert self._store is not None
        return self._store

    def read(self, rel: str) -> bytes:
        import obstore

        with self._errors(rel):
            return bytes(obstore.get(self._open(), self._key(rel)).bytes())

    def read_ranges(self, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        import obstore

        if not ranges:
            return []
        starts, ends = zip(*ranges, strict=True)
        with self._errors(rel):
            parts = obstore.get_ranges(self._open(), self._key(rel), starts=starts, ends=ends)
        for part, (start, end) in zip(parts, ranges, strict=True):
            if len(part) != end - start:
                raise _too_short(self.path(rel), end, start + len(part))
        return [bytes(part) for part in parts]

    def size(self, rel: str) -> int:
        import obstore

        with self._errors(rel):
            return int(obstore.head(self._open(), self._key(rel))["size"])

    def list(self, prefix: str = "", *, start_after: str | None = None, recursive: bool = True) -> Iterator[Entry]:
        import obstore

        directory = self._key(prefix.rstrip("/"))
        cut = len(self._prefix) + 1 if self._prefix else 0
        depth = len(directory) + 1 if directory else 0
        with self._errors(prefix):
            offset = None if start_after is None else self._key(start_after)
            stream = obstore.list(self._open(), directory or None, offset=offset)
            found = []
            for chunk in stream:
                for item in chunk:
                    key = item["path"]
                    if recursive or "/" not in key[depth:]:
                        modified = int(item["last_modified"].timestamp() * 1000)
                        found.append(Entry(key[cut:], int(item["size"]), modified))
        # S3, GCS and Azure list in this order already; obstore does not promise it.
        found.sort()
        yield from found

    def put(self, rel: str, data: bytes) -> None:
        import obstore

        with self._errors(rel):
            obstore.put(self._open(), self._key(rel), data)

    def put_if_absent(self, rel: str, data: bytes) -> None:
        import obstore

        # One request: a multipart upload could not be conditional.
        with self._errors(rel):
            obstore.put(self._open(), self._key(rel), data, mode="create", use_multipart=False)

    def delete(self, rel: str) -> None:
        import obstore

        try:
            with self._errors(rel):
                obstore.delete(self._open(), self._key(rel))
        except StorageError as error:
            if error.code != "NOT_FOUND":
                raise

    def writer(self, rel: str) -> Writer:
        import obstore

        with self._errors(rel):
            return _RemoteWriter(self, rel, obstore.open_writer(self._open(), self._key(rel)))

    @contextlib.contextmanager
    def _errors(self, rel: str) -> Iterator[None]:
        import obstore.exceptions as of_obstore

        try:
            yield
        except (of_obstore.BaseError, OSError, ValueError) as error:
            # By name: obstore raises Python's own FileNotFoundError for its NotFoundError.
            code, hint = _REMOTE_CODES.get(
                type(error).__name__, ("INVALID_NAME" if "parse path" in str(error) else "IO", None)
            )
            # The rest of an obstore message is a debug dump, which may hold headers and signed addresses.
            reason = self._redacted(str(error).strip().partition("\n")[0])
            kind = AlreadyExistsError if code == "ALREADY_EXISTS" else StorageError
            raise kind(code, f"{self.path(rel)}: {reason}", hint=hint, path=self.path(rel)) from None

    def _redacted(self, text: str) -> str:
        for name, value in self._options.items():
            if name not in _CLIENT_OPTIONS and len(str(value)) > 3:
                text = text.replace(str(value), "***")
        return text


_REMOTE_CODES: Mapping[str, tuple[str, str | None]] = {
    "AlreadyExistsError": ("ALREADY_EXISTS", None),
    "PreconditionError": ("ALREADY_EXISTS", None),
    "FileNotFoundError": ("NOT_FOUND", "Check the path."),
    "NotFoundError": ("NOT_FOUND", "Check the path."),
    "PermissionDeniedError": ("PERMISSION_DENIED", "Check the credentials and their rights."),
    "UnauthenticatedError": ("PERMISSION_DENIED", "Give credentials in storage_options or the environment."),
    "UnknownConfigurationKeyError": ("UNKNOWN_STORAGE_OPTION", "Check storage_options."),
    "InvalidPathError": ("INVALID_NAME", "Object stores take no such name."),
    "NotSupportedError": ("NOT_SUPPORTED", "This store cannot do that."),
}


def _typed(options: Mapping[str, str]) -> Any:
    return {k: v.lower() == "true" if k.startswith("allow_") and isinstance(v, str) else v for k, v in options.items()}


class _RemoteWriter:
    def __init__(self, storage: RemoteStorage, rel: str, file: Any) -> None:
        self._storage, self._rel, self._file = storage, rel, file

    def write(self, data: bytes, /) -> int:
        with self._storage._errors(self._rel):
            self._file.write(data)
        return len(data)

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with self._storage._errors(self._rel):
                file.close()

    def abort(self) -> None:
        # Without `close` a multipart upload is never completed, so no object appears.
        self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self.close()
        else:
            self.abort()
