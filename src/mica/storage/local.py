"""Files on local disks. The rule: when a write returns, the file is durable and complete, or it does not exist.

A file is written under a short hidden name in the same directory, synced, and then linked (an atomic create) or renamed
(an atomic replace); the directory is synced too.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from mica import late
from mica.errors import StorageError
from mica.storage.base import (
    AlreadyExistsError,
    Entry,
    Storage,
    Writer,
    another,
    file_uri_path,
    split_remote,
    split_scheme,
    too_short,
)
from mica.storage.options import with_own

ERRNO_CODES: Mapping[int, tuple[str, str, str]] = {
    errno.ENOENT: ("NOT_FOUND", "does not exist", "Check the path."),
    errno.EISDIR: ("IS_A_DIRECTORY", "is a directory, a file is required", "Name a file."),
    errno.ENOTDIR: (
        "NOT_A_DIRECTORY",
        "is a file or below a file, a directory is required",
        "Name a directory.",
    ),
    errno.EACCES: ("PERMISSION_DENIED", "may not be accessed by this user", "Change its permissions or the user."),
    errno.EPERM: ("PERMISSION_DENIED", "may not be accessed by this user", "Change its permissions or the user."),
    errno.EROFS: ("PERMISSION_DENIED", "is on a read-only file system", "Write elsewhere."),
    errno.ENOSPC: ("DISK_FULL", "could not be written: no space left on the device", "Free some space and try again."),
    errno.EDQUOT: ("DISK_FULL", "could not be written: the disk quota is used up", "Free some space and try again."),
    errno.EFBIG: ("DISK_FULL", "could not be written: the file is larger than allowed", "Raise the limit."),
    errno.ENAMETOOLONG: ("INVALID_NAME", "is a name longer than the file system allows", "Use a shorter name."),
    errno.EMFILE: ("TOO_MANY_FILES", "could not be opened: too many open files", "Raise `ulimit -n`."),
}


#: The name of a file being written.
_STAGED = late.pattern(r"\.[0-9a-f]{32}\.tmp")

#: Age at which an untouched staged file may be abandoned: between its creation and its lock a moment passes.
ABANDONED_SECONDS = 60


def _leads_up(link: str) -> bool:
    """Whether a link leads to a directory that it is in."""
    target = os.path.realpath(link)
    return f"{os.path.realpath(os.path.dirname(link))}/".startswith(f"{target.rstrip('/')}/")


class LocalStorage(Storage):
    """A directory of this machine, through the operating system. `options` are for the stores in which a log here may
    name files."""

    def __init__(self, directory: str, external: bool | None = None, options: Mapping[str, str] | None = None) -> None:
        self.external, self._of_stores = external, options
        # Tasks may run in another working directory: the path is made absolute once, here.
        with local_errors("the working directory"):  # it may have been removed
            self.local_path = os.path.abspath(directory)
        self.uri = "file://" + self.local_path

    @property
    def options(self) -> Mapping[str, str]:
        return self._of_stores or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStorage, (self.local_path, self.external, self._of_stores)

    def path(self, rel: str) -> str:
        assert self.local_path is not None
        if "\0" in rel or rel.startswith("/") or ".." in rel.split("/"):
            raise StorageError("INVALID_NAME", f"{rel!r} is not a name below {self.local_path}", hint="Check the log.")
        return os.path.join(self.local_path, rel) if rel else self.local_path

    def child(self, rel: str) -> Storage:
        return LocalStorage(self.path(rel), self.external, self._of_stores)

    def like(self, location: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Storage:
        return Storage.open(location, with_own(storage_options, self._of_stores))

    def at(self, absolute: str) -> tuple[Storage, str]:
        scheme, rest = split_scheme(absolute)
        if scheme not in (None, "file"):
            return split_remote(absolute, self._of_stores)
        full = os.path.normpath(absolute if scheme is None else file_uri_path(rest))
        assert self.local_path is not None
        below = self.local_path.rstrip("/") + "/"
        if full.startswith(below):
            return self, full[len(below) :]
        return LocalStorage(os.path.dirname(full)), os.path.basename(full)

    def holds(self, absolute: str) -> bool:
        return split_scheme(absolute)[0] in (None, "file")

    def read(self, rel: str) -> bytes:
        path = self.path(rel)
        with local_errors(path), _opened(path) as file:
            return file.read()

    def read_ranges(self, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        path = self.path(rel)
        with local_errors(path), _opened(path) as file:
            out = []
            for start, end in ranges:
                out.append(_pread(file.fileno(), start, end))
                if len(out[-1]) < end - start:
                    raise too_short(path, end, os.fstat(file.fileno()).st_size)
            return out

    def read_up_to(self, rel: str, start: int, end: int) -> bytes:
        path = self.path(rel)
        with local_errors(path), _opened(path) as file:
            return _pread(file.fileno(), start, end)

    def read_same(
        self, rel: str, start: int, end: int, tag: str | None, *, size: int | None = None
    ) -> tuple[bytes, str | None]:
        tag = tag or self.tag(rel)
        [data] = self.read_ranges(rel, [(start, end)])
        if self.tag(rel) != tag or size not in (None, self.size(rel)):
            raise another(self.path(rel))
        return data, tag

    def tag(self, rel: str) -> str:
        info = self._info(rel)
        return f"{info.st_ino}-{info.st_size}-{info.st_mtime_ns}"

    def stat(self, rel: str) -> Entry:
        info = self._info(rel)
        return Entry(rel, info.st_size, info.st_mtime_ns // 1_000_000)

    def _info(self, rel: str) -> os.stat_result:
        path = self.path(rel)
        with local_errors(path):
            info = os.stat(path)
            if stat.S_ISDIR(info.st_mode):
                raise IsADirectoryError(errno.EISDIR, "directory")
            _refuse_special(path, info)
            return info

    def list(
        self, prefix: str = "", *, start_after: str | None = None, recursive: bool = True, links: bool = True
    ) -> Iterator[Entry]:
        prefix = prefix.rstrip("/")
        names: list[tuple[str, os.DirEntry[str]]] = []
        todo = [prefix] if links or not self.is_behind_link(prefix) else []
        while todo:
            directory = todo.pop()
            head = directory + "/" if directory else ""
            for item, is_directory in self._entries(directory):
                rel = head + item.name
                if not is_directory:
                    if start_after is None or rel > start_after:
                        names.append((rel, item))
                elif recursive and not (item.is_symlink() and (not links or _leads_up(item.path))):
                    todo.append(rel)
        names.sort(key=lambda pair: pair[0])
        for rel, item in names:
            try:
                info = item.stat()
            except FileNotFoundError:
                continue  # deleted since the directory was read
            yield Entry(rel, info.st_size, info.st_mtime_ns // 1_000_000)

    def _entries(self, directory: str) -> Iterator[tuple[os.DirEntry[str], bool]]:
        """What is in a directory, and whether it is a directory or leads to one; nothing if there is none."""
        path = self.path(directory)
        try:
            with local_errors(path), os.scandir(path) as found:
                for item in found:
                    yield item, item.is_dir()
        except StorageError as error:
            if error.code != "NOT_FOUND":
                raise

    def is_behind_link(self, directory: str) -> bool:
        root = os.path.realpath(self.path(""))
        return os.path.realpath(f"{root}/{directory}") != f"{root}/{directory}".rstrip("/")

    def owns(self, rel: str) -> bool:
        root = os.path.realpath(self.path("")).rstrip("/")
        return os.path.realpath(self.path(rel)).startswith(f"{root}/")

    def put(self, rel: str, data: bytes) -> None:
        path = self.path(rel)
        with local_errors(path), self._staged(path, data) as staged:
            _drop_checksum(path)
            os.replace(staged, path)
            _sync_directory(os.path.dirname(path))

    def put_if_absent(self, rel: str, data: bytes) -> None:
        path = self.path(rel)
        try:
            with local_errors(path), self._staged(path, data) as staged:
                _drop_checksum(path)
                _link(staged, path)
                _sync_directory(os.path.dirname(path))
        except FileExistsError:
            raise AlreadyExistsError("FILE_EXISTS", f"{path} already exists") from None

    @contextlib.contextmanager
    def _staged(self, path: str, data: bytes) -> Iterator[str]:
        """A synced file next to `path`, under a short hidden name that readers ignore."""
        writer = _LocalWriter(path)
        try:
            writer.write(data)
            yield writer.seal()
        finally:
            writer.abort()

    def delete(self, rel: str) -> None:
        path = self.path(rel)
        with local_errors(path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            _drop_checksum(path)

    def clear(self) -> None:
        super().clear()
        # Also removes the directory and its parent if they are empty.
        for directory in (self.path(""), os.path.dirname(self.path(""))):
            with contextlib.suppress(OSError):
                os.rmdir(directory)

    def remove(self) -> None:
        path = self.path("").rstrip("/")
        with local_errors(path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)  # links in it go, what they lead to stays

    def sweep(self, directory: str) -> None:
        with contextlib.suppress(OSError), os.scandir(self.path(directory)) as found:
            for item in found:
                if _STAGED.fullmatch(item.name) and time.time() - item.stat().st_mtime > ABANDONED_SECONDS:
                    _unlink_if_abandoned(item.path)

    def writer(self, rel: str, *, private: bool = False) -> Writer:
        path = self.path(rel)
        with local_errors(path):
            return _LocalWriter(path, 0o600 if private else 0o666)

    def prepare(self, rel: str) -> None:
        path = self.path(rel)
        with local_errors(path):
            _make_directories(os.path.dirname(path))

    def sync(self, rel: str) -> None:
        path = self.path(rel)
        with local_errors(path):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _sync_directory(os.path.dirname(path))


def _pread(file: int, start: int, end: int) -> bytes:
    """The bytes [start, end) of an open file, or fewer where it ends before."""
    data = os.pread(file, end - start, start)
    while len(data) < end - start:
        more = os.pread(file, end - start - len(data), start + len(data))
        if not more:
            break
        data += more
    return data


def _opened(path: str) -> BinaryIO:
    """Opens a regular file for reading. A FIFO would block, and a device has no end, so other kinds are rejected."""
    file = open(path, "rb", opener=_to_read)  # noqa: SIM115 - the caller closes it
    try:
        info = os.fstat(file.fileno())
        if stat.S_ISDIR(info.st_mode):
            raise IsADirectoryError(errno.EISDIR, "directory")
        _refuse_special(path, info)
    except BaseException:
        file.close()
        raise
    return file


def _to_read(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _refuse_special(path: str, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise StorageError(
            "NOT_A_FILE",
            f"{path} is {_KINDS.get(stat.S_IFMT(info.st_mode), 'not a file')}, a file is required",
            hint="Copy its content to a file, or pipe JSON into `mica ingest - TABLE`.",
            path=path,
        )


_KINDS = {
    stat.S_IFIFO: "a named pipe (FIFO)", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


class _LocalWriter(Writer):
    def __init__(self, path: str, mode: int = 0o666) -> None:
        self._path = path
        self._staged: str | None = os.path.join(os.path.dirname(path), f".{uuid.uuid4().hex}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._descriptor = os.open(self._staged, flags, mode)
        except FileNotFoundError:
            _make_directories(os.path.dirname(path))
            self._descriptor = os.open(self._staged, flags, mode)
        # The lock shows that the writer is alive: the process releases it when it ends.
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, data: bytes, /) -> int:
        view = memoryview(data).cast("B")
        with local_errors(self._path):
            while view:
                view = view[os.write(self._descriptor, view) :]
        return len(data)

    def seal(self) -> str:
        """Syncs and closes the staged file, and returns its name."""
        assert self._staged is not None
        os.fsync(self._descriptor)
        self._close()
        return self._staged

    def close(self) -> None:
        if self._staged is None:
            return
        try:
            with local_errors(self._path):
                staged = self.seal()
                _drop_checksum(self._path)
                os.replace(staged, self._path)
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
        # Closed once, wherever Ctrl-C comes: another thread's file may have the number next.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _unlink_if_abandoned(path: str) -> None:
    """Deletes a staged file unless its writer is alive; without working locks the file stays."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(descriptor)


def _link(staged: str, path: str) -> None:
    try:
        os.link(staged, path)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise StorageError(
                "NOT_SUPPORTED",
                f"{path} cannot be created atomically: its file system has no hard links",
                hint="Keep the table on a file system with hard links, or in an object store.",
                path=path,
            ) from error
        raise


def _drop_checksum(path: str) -> None:
    """Deletes `.name.crc`. Hadoop writes it next to files on a local disk, and rejects the file when another writer
    changed its bytes. Without it the file is read unchecked."""
    directory, name = os.path.split(path)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(directory, f".{name}.crc"))


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_directories(path: str) -> None:
    # A new directory is durable only after its parent is synced, so each level is synced.
    if not os.path.isdir(path):
        _make_directories(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        _sync_directory(os.path.dirname(path))


@contextlib.contextmanager
def local_errors(path: str) -> Iterator[None]:
    """Raises errors of the operating system about a local file as `StorageError`."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        known = ERRNO_CODES.get(error.errno or 0)
        if known is None:
            raise StorageError("IO", f"{path}: {error.strerror or error}", path=path) from error
        code, says, hint = known
        raise StorageError(code, f"{path} {says}", hint=hint, path=path) from error
