"""What the running Spark session is told about object stores.

The rule: a setting counts if somebody made it, in `spark.hadoop.fs.…`, in a file of Hadoop's, by `spark.conf` or in the
session's Hadoop configuration; Hadoop's own defaults do not. Without a classic session in this process there are none
but those that it carries to its workers, for `format("mica")`: on Spark Connect they are the server's.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

from mica.storage import Storage, unsaid
from mica.storage.base import SCHEMES
from mica.storage.options import STORES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The connectors that are in use: of `fs.s3.…` and `fs.s3n.…` Spark reads nothing.
_LIVE = ("fs.s3a.", "fs.gs.", "google.", "fs.azure.")
#: What Hadoop calls the schemes of stores; others are told from these by their settings.
_CONNECTORS = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}
_DEFAULTS = "core-default.xml"
#: The variable of the workers' environment: neither a plan nor the log of events shows it.
_CARRIED = "MICA_STORES"


def settings(pattern: str) -> dict[str, str]:
    """The settings whose names match a regular expression, as they are; none if the session's JVM is gone."""
    if _context() is None:
        return {name: value for name, value in _carried().items() if re.search(pattern, name)}
    from py4j.protocol import Py4JError

    try:
        conf = _configuration()
        # One text: each name that is asked by itself is five messages to the JVM.
        names = str(conf.getValByRegex(pattern).keySet().toString())[1:-1].split(", ")
        found = {name: conf.get(name) for name in names if name.startswith(_LIVE)}
        return {name: str(value) for name, value in found.items() if value and _is_made(conf, name)}
    except (Py4JError, OSError):
        return {}


def uri(storage: Storage, rel: str) -> str:
    """A file as Hadoop names it, not encoded."""
    if storage.local_path is not None:
        return f"file:{storage.path(rel)}"
    scheme, _, rest = storage.path(rel).partition("://")
    return f"{_CONNECTORS.get(scheme, scheme)}://{rest}"


def encoded(uri: str) -> str:
    """The same as `inputFiles` has it: what no URI has is encoded, and a disk's has an empty host."""
    uri = re.sub("^file:/(?!/)", "file:///", uri)
    return re.sub(r'[\x00-\x20"#%<>?\[\]\\^`{|}\x7f]', lambda found: f"%{ord(found[0]):02X}", uri)


def reads(storage: Storage, file: str) -> bool:
    """Whether the session was told of the store what the storage was, and finds the file there: its connector may be
    missing, or get its credentials elsewhere."""
    context = _context()
    said = None if context is None else unsaid.with_unsaid(None, str(SCHEMES[storage.uri.partition("://")[0]]))
    if not said or Storage.open(storage.uri, said).options != storage.options:
        return False
    from py4j.protocol import Py4JError

    try:
        path = context._jvm.org.apache.hadoop.fs.Path(file)  # noqa: SLF001
        return bool(path.getFileSystem(_configuration()).getFileStatus(path).isFile())
    except (Py4JError, OSError):
        return False


def carry(spark: SparkSession) -> None:
    """Lets workers that Spark starts from now on know the settings: it plans a Python source in such a process."""
    # Not what the first row of a table needs.
    import json

    from mica.engines.spark.session import is_connect

    found = {} if is_connect(spark) else settings("|".join(map(unsaid.names, STORES)))
    if found:
        spark.sparkContext.environment[_CARRIED] = json.dumps(found)


def _carried() -> dict[str, str]:
    text = os.environ.get(_CARRIED)
    if not text:
        return {}
    import json

    found: dict[str, str] = json.loads(text)
    return found


def _is_made(conf: Any, name: str) -> bool:
    sources = conf.getPropertySources(name)
    return sources is None or any(_DEFAULTS not in source for source in sources)


def _context() -> Any:
    """The running context of this process, or None."""
    core = sys.modules.get("pyspark.core.context")
    context = None if core is None else core.SparkContext._active_spark_context  # noqa: SLF001 - it has no public name
    return None if getattr(context, "_jsc", None) is None else context


def _configuration() -> Any:
    """The configuration of the session."""
    from pyspark.sql import SparkSession

    context = _context()
    # Another thread has no active session.
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession  # noqa: SLF001
    if session is None or session.sparkContext is not context:
        return context._jsc.hadoopConfiguration()  # noqa: SLF001
    return session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
