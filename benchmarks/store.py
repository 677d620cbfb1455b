"""An object store on this machine that is as slow as one far away: a folder by S3's protocol.

Each answer begins after a delay, and all of them share a link of so many bytes a second. The store keeps a record of
its requests, which `/__requests` gives and empties. It knows LIST (version 2), GET with one range, HEAD, PUT (also
where nothing is), uploads in parts, and DELETE of one object or many.

python -m benchmarks.store FOLDER DELAY_SECONDS BYTES_PER_SECOND   (prints its port)
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

BLOCK = 128 << 10
PAGE = 1000


class Link:
    """Who sends waits for his turn, so that all together send no faster than the link."""

    def __init__(self, rate: float) -> None:
        self._rate, self._free, self._lock = rate, 0.0, threading.Lock()

    def take(self, count: int) -> None:
        with self._lock:
            self._free = max(self._free, time.perf_counter()) + count / self._rate
            until = self._free
        time.sleep(max(0.0, until - time.perf_counter()))


class Store(ThreadingHTTPServer):
    """The store, and what was asked of it: (start, end, key, bytes)."""

    daemon_threads = True

    def __init__(self, folder: Path, delay: float, rate: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.delay, self.link = folder, delay, Link(rate)
        self.requests: list[tuple[float, float, str, int]] = []
        self.parts: dict[str, dict[int, bytes]] = {}
        self.one_at_a_time = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Store
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        """LIST or GET."""
        url = urlsplit(self.path)
        if url.path == "/__requests":
            known, self.server.requests = self.server.requests, []
            self._answer(200, json.dumps(known).encode())
            return
        began, query = time.perf_counter(), parse_qs(url.query, keep_blank_values=True)
        time.sleep(self.server.delay)
        count = self._list(query) if "list-type" in query else self._get(self._key)
        self.server.requests.append((began, time.perf_counter(), self._key or "LIST", count))

    def do_HEAD(self) -> None:
        """The size of an object."""
        began, path = time.perf_counter(), self.server.folder / self._key
        time.sleep(self.server.delay)
        self._head(200, path.stat().st_size) if path.is_file() else self._answer(404, b"")
        self.server.requests.append((began, time.perf_counter(), self._key, 0))

    def do_PUT(self) -> None:
        """An object, or a part of one."""
        began, data = time.perf_counter(), self._sent()
        query, path = parse_qs(urlsplit(self.path).query), self.server.folder / self._key
        if "uploadId" in query:
            self.server.parts[query["uploadId"][0]][int(query["partNumber"][0])] = data
            code = 200
        else:
            code = self._put(path, data)
        self._answer(code, b"<Error><Code>PreconditionFailed</Code></Error>" if code == 412 else b"", ("ETag", '"1"'))
        self.server.requests.append((began, time.perf_counter(), self._key, len(data)))

    def do_POST(self) -> None:
        """The beginning and the end of an upload in parts, and objects to delete."""
        began, data = time.perf_counter(), self._sent()
        query, body = parse_qs(urlsplit(self.path).query, keep_blank_values=True), b"<R><ETag>1</ETag></R>"
        if "uploads" in query:
            name = uuid.uuid4().hex
            self.server.parts[name] = {}
            begun = f"<UploadId>{name}</UploadId>"
            body = f"<InitiateMultipartUploadResult>{begun}</InitiateMultipartUploadResult>".encode()
        elif "delete" in query:
            keys = re.findall("<Key>(.*?)</Key>", data.decode())
            for key in keys:
                (self.server.folder / html.unescape(key)).unlink(missing_ok=True)
            gone = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            body = f"<DeleteResult>{gone}</DeleteResult>".encode()
        else:
            parts = self.server.parts.pop(query["uploadId"][0])
            self._put(self.server.folder / self._key, b"".join(parts[number] for number in sorted(parts)))
        self._answer(200, body)
        self.server.requests.append((began, time.perf_counter(), self._key or "DELETE", len(data)))

    def do_DELETE(self) -> None:
        """An object less."""
        began = time.perf_counter()
        time.sleep(self.server.delay)
        (self.server.folder / self._key).unlink(missing_ok=True)
        self._answer(204, b"")
        self.server.requests.append((began, time.perf_counter(), self._key, 0))

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2]

    def _sent(self) -> bytes:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.link.take(len(data))
        time.sleep(self.server.delay)
        return data

    def _put(self, path: Path, data: bytes) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.server.one_at_a_time:
            if self.headers.get("If-None-Match") == "*" and path.exists():
                return 412
            path.write_bytes(data)
        return 200

    def _answer(self, code: int, body: bytes, *more: tuple[str, str]) -> None:
        self.send_response(code)
        for name, value in [("Content-Length", str(len(body))), *more]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _head(self, code: int, length: int, *more: tuple[str, str]) -> None:
        self.send_response(code)
        written = (self.server.folder / self._key).stat().st_mtime
        changed = ("Last-Modified", formatdate(written, usegmt=True))
        for name, value in [("Content-Length", str(length)), changed, ("ETag", f'"{written}"'), *more]:
            self.send_header(name, value)
        self.end_headers()

    def _list(self, query: dict[str, list[str]]) -> int:
        prefix = query.get("prefix", [""])[0]
        after = max(query.get("start-after", [""])[0], query.get("continuation-token", [""])[0])
        top = self.server.folder / prefix.rpartition("/")[0]
        keys = sorted(str(path.relative_to(self.server.folder)) for path in top.rglob("*") if path.is_file())
        found = [key for key in keys if key.startswith(prefix) and key > after]
        more = f"<NextContinuationToken>{found[PAGE - 1]}</NextContinuationToken>" if len(found) > PAGE else ""
        items = "".join(
            f"<Contents><Key>{html.escape(key)}</Key><LastModified>{self._written(key)}</LastModified><ETag>1</ETag>"
            f"<Size>{(self.server.folder / key).stat().st_size}</Size></Contents>"
            for key in found[:PAGE]
        )
        cut = f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        body = f"<ListBucketResult><Name>b</Name>{cut}{items}{more}</ListBucketResult>".encode()
        self._answer(200, body)
        return len(body)

    def _written(self, key: str) -> str:
        written = datetime.fromtimestamp((self.server.folder / key).stat().st_mtime, UTC)
        return written.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _get(self, key: str) -> int:
        path = self.server.folder / key
        if not path.is_file():
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return 0
        size = path.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        start, end = (int(asked[1]), min(size, int(asked[2] or size) + 1)) if asked else (0, size)
        place = ("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self._head(206 if asked else 200, end - start, *([place] if asked else []))
        with path.open("rb") as file:
            file.seek(start)
            for at in range(start, end, BLOCK):
                block = file.read(min(BLOCK, end - at))
                self.server.link.take(len(block))
                self.wfile.write(block)
        return end - start


class Running:
    """A store in a process of its own, so that what it does costs mica no lock."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self.options = {
            "endpoint": self._address, "region": "us-east-1", "allow_http": "true",
            "access_key_id": "id", "secret_access_key": "secret",
        }  # fmt: skip

    def requests(self) -> list[tuple[float, float, str, int]]:
        """What was asked since the last call."""
        with urllib.request.urlopen(f"{self._address}/__requests", timeout=30) as answer:
            return [tuple(one) for one in json.load(answer)]


@contextmanager
def running(folder: Path, delay: float, rate: float) -> Iterator[Running]:
    """Starts a store over a folder."""
    command = [sys.executable, "-m", "benchmarks.store", str(folder), str(delay), str(rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Running(int(process.stdout.readline()))
        finally:
            process.kill()


if __name__ == "__main__":
    store = Store(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
    print(store.server_port, flush=True)
    store.serve_forever()
