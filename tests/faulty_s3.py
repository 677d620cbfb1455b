"""An S3 in memory whose answers a test spoils: refused, cut off, malformed, or lost after the work was done.

`with FaultyS3() as store` runs it; `store.spoil(fault, "PUT", "x.json")` spoils the next request of that kind whose
name ends so. A fault is a status (nothing is done), or one of `FAULTS` (the work is done, its answer is not given).
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

#: No answer, half of one, one that is no XML, and an error: each after the work was done.
FAULTS = ("lost", "half", "garbage", "late error")

_Answer = tuple[int, bytes, dict[str, str]]


class FaultyS3:
    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, float, str]] = {}
        self.asked: list[tuple[str, str]] = []
        #: The one that there is; None: each.
        self.bucket: str | None = None
        #: Who asked last, as the request says it.
        self.signed = ""
        self._uploads: dict[str, dict[int, bytes]] = {}
        self._spoilt: list[tuple[int | str, str, str]] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        handler = type("_Of", (_Handler,), {"store": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def options(self) -> dict[str, str]:
        place = f"http://127.0.0.1:{self._server.server_port}"
        keys = {"access_key_id": "an-id", "secret_access_key": "a-secret", "region": "us-east-1"}
        return {"endpoint": place, "allow_http": "true", **keys}

    def spoil(self, fault: int | str, kind: str, ending: str = "", times: int = 1) -> None:
        """`kind` is a verb, or LIST, BEGIN, PART and COMPLETE for those of a listing and of an upload in parts."""
        self._spoilt += [(fault, kind, ending)] * times

    def fault_of(self, kind: str, name: str) -> int | str | None:
        with self._lock:
            self.asked.append((kind, name))
            for one in self._spoilt:
                if one[1] == kind and name.endswith(one[2]):
                    self._spoilt.remove(one)
                    return one[0]
        return None

    def done(self, kind: str, key: str, query: dict[str, str], headers: Any, body: bytes) -> _Answer:
        with self._lock:
            if kind == "LIST":
                return 200, self._listed(query.get("prefix", ""), query.get("start-after", "")), {}
            if kind == "BEGIN":
                number = str(len(self._uploads))
                self._uploads[number] = {}
                return 200, f"<I><Bucket>b</Bucket><Key>{key}</Key><UploadId>{number}</UploadId></I>".encode(), {}
            if kind == "PART":
                self._uploads[query["uploadId"]][int(query["partNumber"])] = body
                return 200, b"", {"ETag": f'"{len(body)}"'}
            if kind == "COMPLETE":
                parts = self._uploads.pop(query["uploadId"], None)
                if parts is None:
                    return _refused(404, "NoSuchUpload")
                tag = self._put(key, b"".join(part for _, part in sorted(parts.items())))
                return 200, f"<C><Key>{key}</Key><ETag>{escape(tag)}</ETag></C>".encode(), {}
            if kind == "PUT":
                if headers.get("If-None-Match") == "*" and key in self.objects:
                    return _refused(412, "PreconditionFailed")
                return 200, b"", {"ETag": self._put(key, body)}
            if kind == "DELETE" and "uploadId" in query:
                self._uploads.pop(query["uploadId"], None)
                return 204, b"", {}
            if kind == "DELETE":
                named = [unescape(name) for name in re.findall(r"<Key>(.*?)</Key>", body.decode())]
                for name in named:
                    self.objects.pop(name, None)
                told = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in named)
                return 200, f"<DeleteResult>{told}</DeleteResult>".encode(), {}
            if key not in self.objects:
                return _refused(404, "NoSuchKey")
            data, at, tag = self.objects[key]
        told = {"ETag": tag, "Last-Modified": formatdate(at, usegmt=True)}
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("Range") or "")
        if kind == "HEAD" or found is None:
            return 200, data, told
        start, end = int(found[1]), min(int(found[2]) + 1, len(data))
        return 206, data[start:end], {**told, "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}

    def _put(self, key: str, body: bytes) -> str:
        self.objects[key] = body, time.time(), f'"{hashlib.sha256(body).hexdigest()}"'
        return self.objects[key][2]

    def _listed(self, prefix: str, after: str) -> bytes:
        text = ""
        for key, (data, at, tag) in sorted(self.objects.items()):
            if key.startswith(prefix) and key > after:
                when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at))
                text += f"<Contents><Key>{escape(key)}</Key><LastModified>{when}</LastModified>"
                text += f"<ETag>{escape(tag)}</ETag><Size>{len(data)}</Size></Contents>"
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{text}</ListBucketResult>".encode()


def _refused(status: int, code: str) -> _Answer:
    return status, f"<Error><Code>{code}</Code></Error>".encode(), {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store: FaultyS3

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _answer(self) -> None:
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = {("GET", False): "LIST"}.get((self.command, bool(key)), self.command)
        if "uploads" in query:
            kind = "BEGIN"
        elif "uploadId" in query and kind in ("PUT", "POST"):
            kind = "PART" if kind == "PUT" else "COMPLETE"
        elif "delete" in query:
            kind = "DELETE"
        self.store.signed = self.headers.get("Authorization") or ""
        if self.store.bucket not in (None, bucket):
            return self._send(*_refused(404, "NoSuchBucket"))
        fault = self.store.fault_of(kind, key or query.get("prefix", ""))
        if isinstance(fault, int):
            return self._send(*_refused(fault, "Spoilt"))
        status, found, headers = self.store.done(kind, key, query, self.headers, body)
        if fault == "late error":
            return self._send(*_refused(500, "InternalError"))
        if fault == "garbage":
            return self._send(200, b"<html>hello", {"ETag": '"0"'})
        if fault is not None:
            self.close_connection = True
        if fault == "lost":
            return None
        return self._send(status, found, headers, len(found) // 2 if fault == "half" else None)

    def _send(self, status: int, body: bytes, headers: dict[str, str], most: int | None = None) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:most])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):  # every verb
            return self._answer
        raise AttributeError(name)
