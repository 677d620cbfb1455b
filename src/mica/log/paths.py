"""Names of the files in `_delta_log`, and the URIs of data files in log lines.

The rule: a name in the log is a URI (RFC 2396, PROTOCOL.md "Add File and Remove File") and is decoded exactly once,
here; all spellings of one file (`/a`, `file:/a`, `file:///a`, `file://localhost/a`; `%2E` and `.`; `./a` and `a`) have
the same key.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from mica import compute as pc
from mica import late
from mica.arrays import arrow_array

LOG = "_delta_log"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
SIDECARS = f"{LOG}/_sidecars"

_NAME = late.pattern(
    r"(?P<version>\d{20})\."
    r"(?:(?P<commit>json)"
    r"|(?P<classic>checkpoint\.parquet)"
    r"|checkpoint\.(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet"
    r"|checkpoint\.(?P<uuid>[0-9a-fA-F-]{36})\.(?:json|parquet)"
    r"|(?P<end>\d{20})\.compacted\.json)"
)
_LAST_VERSION = 2**63 - 1


class LogName(NamedTuple):
    """The parsed name of a file in `_delta_log`. `kind` is commit, checkpoint, part, v2 or compaction."""

    kind: str
    version: int
    part: int = 0
    parts: int = 1
    end: int = -1


def parse_log_name(name: str) -> LogName | None:
    """Parses a file name directly in `_delta_log`; None for names outside the protocol."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    version = int(found["version"])
    if version > _LAST_VERSION:
        return None
    if found["commit"]:
        return LogName("commit", version)
    if found["classic"]:
        return LogName("checkpoint", version)
    if found["uuid"]:
        return LogName("v2", version)
    if found["parts"]:
        return LogName("part", version, int(found["part"]), int(found["parts"]))
    return LogName("compaction", version, end=int(found["end"]))


def commit_name(version: int) -> str:
    """Returns the commit file of a version, relative to the table's root."""
    return f"{LOG}/{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """Returns the classic single-file checkpoint of a version, relative to the table's root."""
    return f"{LOG}/{version:020d}.checkpoint.parquet"


def v2_checkpoint_name(version: int, unique: str) -> str:
    """Returns a V2 checkpoint of a version by its UUID, relative to the table's root."""
    return f"{LOG}/{version:020d}.checkpoint.{unique}.parquet"


def encode_path(path: str) -> str:
    """Encodes a relative file name as the URI for an add line, including `:`, so that no name looks like a scheme.

    Letters beyond ASCII stay, as in Java's URIs: the VACUUM of delta-spark compares names of the log with those that it
    would write itself, without decoding them, and deletes files in use that are spelled otherwise.
    """
    return _ENCODED.sub(lambda run: late.urls.quote(run[0], "/!$&'()*+,;=@-._~", errors="surrogateescape"), path)


#: What Java's URIs encode, or may: ASCII, spaces and controls beyond it; and bytes that are not UTF-8.
_ENCODED = late.pattern("[\0-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ud800-\udfff]+")


def as_uri(path: str) -> str:
    """A place (a local path, or a URL) as Spark's `_metadata.file_path` has it: what Java's URI forbids is encoded."""
    scheme, rest = ("file:", path) if path.startswith("/") else ("", path)
    return scheme + "".join(c if c > "\x7f" or c in _IN_JAVA_URIS else f"%{ord(c):02X}" for c in rest)


_IN_JAVA_URIS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-!.~'()*,;:$&+=/@")


def decode_path(uri: str) -> str:
    """Decodes a URI of the log to a file name."""
    return late.urls.unquote(uri, errors="surrogateescape") if "%" in uri else uri


def readable_name(uri: str) -> str:
    """Decodes a URI of the log to the name of a file that is to be read. One that is not UTF-8, which neither Arrow nor
    the kernel can name, stays as it is: no file has it."""
    name = decode_path(uri)
    return name if is_text(name) else uri


def with_names(files: pa.Table) -> pa.Table:
    """Returns the table with its column `path` decoded from URIs of the log to file names."""
    paths = files["path"]
    if not pc.any(pc.match_substring(paths, "%")).as_py():
        return files
    names = arrow_array([readable_name(path) for path in paths.to_pylist()], pa.string())
    return files.set_column(files.schema.get_field_index("path"), "path", names)


#: The directory of the null value, as Hive and Spark name it.
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"


def escape_partition_value(value: str) -> str:
    """Escapes a partition column or value for a directory name, as Hive and Spark do."""
    return "".join(f"%{ord(c):02X}" if c in _HIVE_ESCAPED or c < " " else c for c in value)


_HIVE_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{[]^")


def partition_directory(values: Mapping[str, str | None]) -> str:
    """Returns the directory of a partition, named as by Hive and Spark. Readers use the log's values, not this name."""
    return "/".join(
        f"{escape_partition_value(name)}={NULL_DIRECTORY if text is None else escape_partition_value(text)}"
        for name, text in values.items()
    )


def new_file_name(suffix: str, mark: str, prefix: str) -> str:
    """Returns a new unique data file name; it begins with the prefix, `-` and the mark."""
    return f"{prefix}-{mark}{uuid.uuid4()}{suffix}"


#: Matches a path of the log that is absolute: a local one, or a URI. `x:y`, decoded from `x%3Ay`, is a name.
ABSOLUTE = r"^(/|[A-Za-z][A-Za-z0-9+.\-]*:/)"


#: What may be spelled otherwise: an encoded character, a directory that is the same one.
_SPELLED = r"%|(^|/)\./"
_SAME = late.pattern(r"(^|/)(?:\./+)+")


def canonical_keys(paths: pa.Array) -> pa.Array:
    """Returns the paths with one spelling per file: decoded, and local absolute ones without a scheme."""
    odd = pc.or_(pc.match_substring_regex(paths, _SPELLED), pc.starts_with(paths, "file:", ignore_case=True))
    if not pc.any(odd).as_py():
        return paths
    fixed = [_canonical(path) for path in paths.filter(odd).to_pylist()]
    return pc.replace_with_mask(paths, odd, arrow_array(fixed, paths.type))


def _canonical(uri: str) -> str:
    # A lone surrogate (a byte that is not UTF-8) cannot be stored in Arrow: such a name stays encoded.
    path = late.urls.unquote(uri, errors="surrogateescape")
    if not is_text(path):
        path = uri
    if path[:6].lower() == "file:/":
        path = "/" + path[5:].removeprefix("//localhost/").lstrip("/")
    return _SAME.sub(r"\1", path)


def is_text(text: str) -> bool:
    """Whether a name is UTF-8: no log names another one, and Arrow holds none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def file_keys(paths: pa.Array, vectors: pa.StructArray | None) -> pa.Array:
    """Returns the primary key of each logical file: its path and the unique id of its deletion vector.

    PROTOCOL.md, "Deletion Vectors": the id is storageType, pathOrInlineDv and, with an offset, `@offset`.
    """
    keys = canonical_keys(paths)
    if vectors is None or vectors.null_count == len(vectors):
        return keys
    # Some checkpoints use a struct of nulls for a missing vector.
    kind, where, offset = (pc.struct_field(vectors, name) for name in ("storageType", "pathOrInlineDv", "offset"))
    at = pc.if_else(pc.is_valid(offset), pc.binary_join_element_wise("@", pc.cast(offset, pa.string()), ""), "")
    ids = pc.binary_join_element_wise(kind, where, at, "")
    with_vector = pc.binary_join_element_wise(keys, ids, "\n")
    return pc.coalesce(with_vector, keys)
