"""Engines: where tasks run, in this process or on Spark.

`of` alone chooses the engine: by a session, by a DataFrame, or by their absence. Locations that are opened without
options take those of the running session.
"""

from __future__ import annotations

from typing import Any

from mica.engines.base import Engine
from mica.engines.local import IN_PROCESS
from mica.engines.spark import hadoop, types
from mica.storage import unsaid

unsaid.ask(hadoop.settings)


def of(given: Any = None) -> Engine:
    """The engine of a Spark session or DataFrame; for anything else (None, Arrow, pandas) the threads of this process.

    Does not import pyspark.
    """
    is_frame = types.is_frame(given)
    if not is_frame and not types.is_session(given):
        return IN_PROCESS
    from mica.engines.spark.engine import Spark

    return Spark(given.sparkSession if is_frame else given)
