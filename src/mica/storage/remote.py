"""Object stores through obstore. The rule: one request decides (a conditional put is never multipart), and no message
contains a secret.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from obstore.exceptions import BaseError

from mica.errors import MicaError, StorageError
from mica.storage.answers import meaning, repeated
from mica.storage.base import (
    SCHEMES,
    AlreadyExistsError,
    Entry,
    Storage,
    Writer,
    another,
    split_remote,
    split_scheme,
    too_short,
)
from mica.storage.options import ALLOW_EXTERNAL, CLIENT, allows_external, kind_of, normalized, with_own
from mica.storage.profiles import PROFILE, provider, settings
from mica.storage.waiting import answered

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# Options whose values may appear in an error; all others are treated as secrets.
_NO_SECRETS = frozenset("region default_region endpoint bucket container_name virtual_hosted_style_request".split())

#: The process that asked a store first. The threads that wait for answers are there, and not in a fork of it, which
#: would wait for ever.
_asked_in: int | None = None

#: Bytes that are put, or compared, by one request.
_PIECE = 8 << 20

_FAILURES = (OSError, ValueError, NotImplementedError, BaseError)


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
        scheme, _, host = root.partition("://")
        self._options = normalized(options, str(SCHEMES[scheme]), host)
        self.external = allows_external(options)
        self._store = store
        self.uri = f"{root}/{self._prefix}" if self._prefix else root

    @property
    def options(self) -> Mapping[str, str]:
        return self._options

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStorage, (self._root, self._prefix, self._options)

    def path(self, rel: str) -> str:
        return f"{self.uri}/{rel}" if rel else self.uri

    def _key(self, rel: str) -> str:
        return "/".join(part for part in (self._prefix, rel) if part)

    def child(self, rel: str) -> Storage:
        return RemoteStorage(self._root, self._key(rel), self._options, self._made())

    def at(self, absolute: str) -> tuple[Storage, str]:
        scheme, rest = split_scheme(absolute)
        mine, _, my_host = self._root.partition("://")
        host, _, key = (my_host, "", rest) if scheme is None else rest.removeprefix("//").partition("/")
        if scheme is None or (SCHEMES.get(scheme) == SCHEMES[mine] and host == my_host):
            key = key.lstrip("/")  # as the store does
            if key.startswith(self._prefix + "/") or not self._prefix:
                return self, key[len(self._prefix) :].lstrip("/")
            return RemoteStorage(self._root, "", self._options, self._store), key
        return split_remote(absolute, self._options_for(scheme))

    def like(self, location: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Storage:
        scheme = split_scheme(os.fspath(location))[0]
        # The log of a table on a disk may name files here.
        own = self._options if scheme in (None, "file") else self._options_for(scheme)
        return Storage.open(location, with_own(storage_options, own))

    def _options_for(self, scheme: str | None) -> Mapping[str, str] | None:
        """The options for a location of this scheme: they are of one kind of store."""
        mine = SCHEMES[self._root.partition("://")[0]]
        return self._options if kind_of(SCHEMES.get(scheme or "") or "") == kind_of(mine or "") else None

    def holds(self, absolute: str) -> bool:
        scheme, rest = split_scheme(absolute)
        if scheme is None:
            return True
        mine, _, my_host = self._root.partition("://")
        return SCHEMES.get(scheme) == SCHEMES[mine] and rest.removeprefix("//").partition("/")[0] == my_host

    def _open(self) -> ObjectStore:
        """The store, to ask it. Errors: FORKED."""
        global _asked_in  # noqa: PLW0603 - as the threads are
        _asked_in = _asked_in or os.getpid()
        if _asked_in != os.getpid():
            raise StorageError(
                "FORKED",
                f"{self.uri} cannot be read or written here: this process is a fork of one that has asked a store",
                hint="Start processes by spawn or forkserver, or ask no store before they are forked.",
                path=self.uri,
            )
        return self._made()

    def _made(self) -> ObjectStore:
        if self._store is None:
            import obstore.store

            scheme, _, host = self._root.partition("://")
            client = {k: v for k, v in self._options.items() if k in CLIENT}
            config = {k: v for k, v in self._options.items() if k not in (*CLIENT, ALLOW_EXTERNAL, PROFILE)}
            of_amazon = SCHEMES[scheme] == "s3"
            asking = provider(self._options) if of_amazon else None
            config |= settings(self._options) if of_amazon else {}
            with self.errors(""):
                self._store = obstore.store.from_url(
                    f"{SCHEMES[scheme]}://{host}",
                    config=config,  # type: ignore[call-overload]
                    client_options=_typed(client),
                    **({} if asking is None else {"credential_provider": asking}),
                )
        assert self._store is not None
        return self._store

    def read(self, rel: str) -> bytes:
        import obstore

        with self.errors(rel):
            return answered(lambda: bytes(obstore.get(self._open(), self._key(rel)).bytes()))

    def read_ranges(self, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        import obstore

        # obstore rejects empty ranges, and a range that begins beyond the end fails silently.
        filled = [(start, end) for start, end in ranges if end > start]
        parts: dict[tuple[int, int], bytes] = {}
        if filled:
            starts, ends = zip(*filled, strict=True)
            try:
                with self.errors(rel):
                    found = answered(lambda: obstore.get_ranges(self._open(), self._key(rel), starts=starts, ends=ends))
            except StorageError as error:
                size = self.size(rel) if error.code == "IO" else None
                if size is not None and max(ends) > size:
                    raise too_short(self.path(rel), max(ends), size) from None
                raise
            parts = dict(zip(filled, map(bytes, found), strict=True))
        for (start, end), part in parts.items():
            if len(part) != end - start:
                raise too_short(self.path(rel), end, start + len(part))
        return [parts.get((start, end), b"") for start, end in ranges]

    def read_up_to(self, rel: str, start: int, end: int) -> bytes:
        import obstore

        with self.errors(rel):
            return answered(
                lambda: bytes(obstore.get(self._open(), self._key(rel), options={"range": (start, end)}).bytes())
            )

    def read_same(
        self, rel: str, start: int, end: int, tag: str | None, *, size: int | None = None
    ) -> tuple[bytes, str | None]:
        import obstore

        options: dict[str, Any] = {"range": (start, end)} | ({} if tag is None else {"if_match": tag})

        def asked() -> tuple[Any, bytes]:
            found = obstore.get(self._open(), self._key(rel), options=options)  # type: ignore[arg-type]
            return found, bytes(found.bytes())

        try:
            with self.errors(rel):
                found, data = answered(asked)
        except AlreadyExistsError:  # the precondition
            raise another(self.path(rel)) from None
        if size is not None and int(found.meta["size"]) != size:
            raise another(self.path(rel))
        if len(data) != end - start:
            raise too_short(self.path(rel), end, start + len(data))
        return data, found.meta["e_tag"]

    def stat(self, rel: str) -> Entry:
        import obstore

        key = self._key(rel)
        if not key:  # stores answer for the bucket, as for a file of no bytes
            raise StorageError(
                "IS_A_DIRECTORY", f"{self} is a bucket, not a file", hint=f"Write {self}/*.", path=str(self)
            )
        with self.errors(rel):
            found = answered(lambda: obstore.head(self._open(), key))
        return Entry(rel, int(found["size"]), int(found["last_modified"].timestamp() * 1000))

    def list(
        self,
        prefix: str = "",
        *,
        start_after: str | None = None,
        recursive: bool = True,
        links: bool = True,  # noqa: ARG002 - stores have none
    ) -> Iterator[Entry]:
        import obstore

        directory = self._key(prefix.rstrip("/"))
        cut = len(self._prefix) + 1 if self._prefix else 0
        depth = len(directory) + 1 if directory else 0
        offset = None if start_after is None else self._key(start_after)

        def listed() -> list[Entry]:
            found = []
            with self.errors(prefix):
                for chunk in obstore.list(self._open(), directory or None, offset=offset):
                    for item in chunk:
                        key = item["path"]
                        if recursive or "/" not in key[depth:]:
                            modified = int(item["last_modified"].timestamp() * 1000)
                            found.append(Entry(key[cut:], int(item["size"]), modified))
            return found

        found = answered(lambda: repeated(listed))
        # S3, GCS and Azure list in this order already; obstore does not promise it.
        found.sort()
        # What stands for a folder in a store's console is no file.
        above = {entry.path.rpartition("/")[0] for entry in found} if any(not entry.size for entry in found) else set()
        yield from (entry for entry in found if entry.size or (entry.path and entry.path not in above))

    def has_files(self) -> bool:
        import obstore

        def first() -> Sequence[Mapping[str, Any]]:
            with self.errors(""):
                return next(iter(obstore.list(self._open(), self._prefix or None)), ())

        found = answered(lambda: repeated(first))
        return len(found) > 0 and (any(item["size"] for item in found) or super().has_files())

    def put(self, rel: str, data: bytes) -> None:
        import obstore

        if len(data) > _PIECE:
            with self.writer(rel) as file:
                file.write(data)
            return
        with self.errors(rel):
            answered(lambda: obstore.put(self._open(), self._key(rel), data, use_multipart=False))

    def put_if_absent(self, rel: str, data: bytes) -> None:
        import obstore

        # One request: a multipart upload could not be conditional.
        with self.errors(rel):
            answered(lambda: obstore.put(self._open(), self._key(rel), data, mode="create", use_multipart=False))

    def delete(self, rel: str) -> None:
        import obstore

        try:
            with self.errors(rel):
                answered(lambda: obstore.delete(self._open(), self._key(rel)))
        except StorageError as error:
            if error.code != "NOT_FOUND":
                raise

    def delete_all(self, rels: Sequence[str]) -> None:
        if not self._deleted(rels):
            super().delete_all(rels)  # says which, and which are not there

    def discard(self, rels: Iterable[str]) -> None:
        rels = list(rels)
        if not self._deleted(rels):
            super().discard(rels)

    def _deleted(self, rels: Sequence[str]) -> bool:
        """Whether a store deletes files by a request for a thousand, and all of them."""
        import obstore

        try:
            with self.errors(""):
                answered(lambda: obstore.delete(self._open(), [self._key(rel) for rel in rels]))
        except StorageError:
            return False
        return True

    def writer(self, rel: str, *, private: bool = False) -> Writer:  # noqa: ARG002 - who reads a bucket is its own business
        import obstore

        with self.errors(rel):
            return _RemoteWriter(self, rel, obstore.open_writer(self._open(), self._key(rel)))

    @contextlib.contextmanager
    def errors(self, rel: str) -> Iterator[None]:
        """Translates obstore's exceptions inside the block to ours, about the file `rel`."""
        try:
            yield
        except BaseException as error:
            # obstore panics if a file is shorter than two ranges that it reads together.
            if isinstance(error, MicaError):
                raise
            if not isinstance(error, _FAILURES) and type(error).__name__ != "PanicException":
                raise
            told = self._told(error, rel)
            try:
                raise told from None
            finally:
                told.__context__ = None  # it holds the dump: not shown, but found by who reports errors elsewhere

    def _told(self, error: BaseException, rel: str) -> StorageError:
        told = meaning(error)
        kind = AlreadyExistsError if told.code == "FILE_EXISTS" else StorageError
        made = kind(told.code, f"{self.path(rel)}{self._redacted(told.says)}", hint=told.hint, path=self.path(rel))
        made.refused, made.unreadable = told.refused, told.unreadable
        return made

    def _redacted(self, text: str) -> str:
        for name, value in self._options.items():
            if name not in CLIENT | _NO_SECRETS and len(str(value)) > 3:
                text = text.replace(str(value), "***")
        return text


def _typed(options: Mapping[str, str]) -> Any:
    return {k: v.lower() == "true" if k.startswith("allow_") and isinstance(v, str) else v for k, v in options.items()}


class _RemoteWriter(Writer):
    """An upload. obstore ends it again if the answer to its end was lost, and the store then knows no such upload any
    more: whether it was ended is read off the file, which has these bytes or not."""

    def __init__(self, storage: RemoteStorage, rel: str, file: Any) -> None:
        self._storage, self._rel, self._file = storage, rel, file
        self._size = self._sum = 0

    def write(self, data: bytes, /) -> int:
        with self._storage.errors(self._rel):
            answered(lambda: self._file.write(data))
        self._size, self._sum = self._size + len(data), zlib.crc32(data, self._sum)
        return len(data)

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            try:
                with self._storage.errors(self._rel):
                    answered(file.close)
            except StorageError as error:
                if error.code not in ("IO", "NOT_FOUND") or not self._is_there():
                    raise

    def _is_there(self) -> bool:
        with contextlib.suppress(StorageError):
            if self._storage.size(self._rel) == self._size:
                found = 0
                for start in range(0, self._size, _PIECE):
                    piece = self._storage.read_up_to(self._rel, start, min(start + _PIECE, self._size))
                    found = zlib.crc32(piece, found)
                return found == self._sum
        return False

    def abort(self) -> None:
        # Without `close` a multipart upload is never completed, so no object appears.
        self._file = None
