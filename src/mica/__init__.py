"""Delta tables with shredded VARIANT columns and collated strings, for PySpark and in process: the public names.

Each name is loaded on first use: `import mica` alone loads neither pyspark nor pyarrow.parquet.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mica import variant as variant
    from mica.checking.check import check as check
    from mica.checking.drift import Drift as Drift
    from mica.checking.drift import Moment as Moment
    from mica.checking.drift import PathDrift as PathDrift
    from mica.checking.drift import drift as drift
    from mica.checking.erased import Erased as Erased
    from mica.checking.erased import check_erased as check_erased
    from mica.checking.evidence import Suggestion as Suggestion
    from mica.checking.report import Report as Report
    from mica.checking.report import Violation as Violation
    from mica.checking.suggestions import suggest as suggest
    from mica.engines.progress import Progress as Progress
    from mica.engines.spark.functions import parse_json as parse_json
    from mica.engines.spark.functions import try_parse_json as try_parse_json
    from mica.engines.spark.session import session as session
    from mica.errors import ConflictError as ConflictError
    from mica.errors import CorruptDataError as CorruptDataError
    from mica.errors import MicaError as MicaError
    from mica.errors import StorageError as StorageError
    from mica.errors import UnsupportedTableError as UnsupportedTableError
    from mica.errors import UserError as UserError
    from mica.log.actions import Metadata as Metadata
    from mica.log.actions import Protocol as Protocol
    from mica.log.snapshot import Snapshot as Snapshot
    from mica.maintain.convert import Conversion as Conversion
    from mica.maintain.convert import convert_files as convert_files
    from mica.maintain.fsck import Fsck as Fsck
    from mica.maintain.repair import Repair as Repair
    from mica.maintain.repair import repair as repair
    from mica.maintain.restore import Restore as Restore
    from mica.maintain.vacuum import Vacuum as Vacuum
    from mica.parquet import read_parquet as read_parquet
    from mica.parquet import write_parquet as write_parquet
    from mica.query.enabled import disable as disable
    from mica.query.enabled import enable as enable
    from mica.query.entry import sql as sql
    from mica.query.explained import QueryExplanation as QueryExplanation
    from mica.query.explained import explain as explain
    from mica.query.registry import register as register
    from mica.readers.dataset import Dataset as Dataset
    from mica.readers.dataset import dataset as dataset
    from mica.readers.polars_source import scan_polars as scan_polars
    from mica.scan.explanation import Explanation as Explanation
    from mica.scan.scan import Scan as Scan
    from mica.schema.types import DataType as DataType
    from mica.schema.types import StructField as StructField
    from mica.schema.types import StructType as StructType
    from mica.table import Table as Table
    from mica.write.bare import Written as Written
    from mica.write.commit import Commit as Commit
    from mica.write.ingest import IngestReport as IngestReport
    from mica.write.ingest import ingest_json as ingest_json
    from mica.write.landing import stream_json as stream_json
    from mica.write.merge import Merge as Merge
    from mica.write.merge_clauses import MergeClause as MergeClause

    __version__: str

#: Each name's module.
_PLACES = {
    name: module
    for module, names in {
        "checking.check": "check",
        "checking.drift": "Drift Moment PathDrift drift",
        "checking.erased": "Erased check_erased",
        "checking.evidence": "Suggestion",
        "checking.report": "Report Violation",
        "checking.suggestions": "suggest",
        "engines.progress": "Progress",
        "engines.spark.functions": "parse_json try_parse_json",
        "engines.spark.session": "session",
        "errors": "ConflictError CorruptDataError MicaError StorageError UnsupportedTableError UserError",
        "log.actions": "Metadata Protocol",
        "log.snapshot": "Snapshot",
        "maintain.convert": "Conversion convert_files",
        "maintain.fsck": "Fsck",
        "maintain.repair": "Repair repair",
        "maintain.restore": "Restore",
        "maintain.vacuum": "Vacuum",
        "parquet": "read_parquet write_parquet",
        "query.enabled": "disable enable",
        "query.entry": "sql",
        "query.explained": "QueryExplanation explain",
        "query.registry": "register",
        "readers.dataset": "Dataset dataset",
        "readers.polars_source": "scan_polars",
        "scan.explanation": "Explanation",
        "scan.scan": "Scan",
        "schema.types": "DataType StructField StructType",
        "table": "Table",
        "write.bare": "Written",
        "write.commit": "Commit",
        "write.ingest": "IngestReport ingest_json",
        "write.landing": "stream_json",
        "write.merge": "Merge",
        "write.merge_clauses": "MergeClause",
    }.items()
    for name in names.split()
}

__all__ = [*sorted(_PLACES), "variant"]  # noqa: PLE0604 - all of them are strings


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("mica.variant.kernel").version()
    elif name == "variant":
        value = import_module("mica.variant")
    elif name in _PLACES:
        value = getattr(import_module(f"mica.{_PLACES[name]}"), name)
    else:
        raise AttributeError(f"module 'mica' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
