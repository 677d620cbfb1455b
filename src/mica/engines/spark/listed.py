"""Whether a DataFrame is a list of rows that this process gave to Spark: `spark.createDataFrame([(1, "a")], schema)`.

The rule: of such a frame Spark knows an RDD only. It is a list if the one function of Python between the list and
Spark's rows is PySpark's own, which writes the list anew: a function of the user's may make any number of rows.
"""

from __future__ import annotations

import pickle
import re
from typing import Any

#: Spark's plan for the rows of an RDD.
RDD = "LogicalRDD"

#: What lies between Spark's rows and the list, as Spark names it.
_BETWEEN = ["MapPartitionsRDD", "MapPartitionsRDD", "ParallelCollectionRDD", "PythonRDD"]

#: The function that PySpark maps over a list to write it by another serializer; it gives back what it gets.
_AS_IT_IS = ("pyspark.core.rdd", "RDD._reserialize.<locals>.<lambda>")

#: That function takes 1,329 bytes: longer ones are not looked at.
_LONGEST = 4096

#: So many rows of a list are one element of its RDD at most (`SparkContext.parallelize`).
_ROWS_OF_ELEMENT = 1024


def is_list(relation: Any, most: int) -> bool:
    """Whether Spark's plan of an RDD holds a list of so many rows at most."""
    try:
        ancestors = relation.rdd().getNarrowAncestors()
        kinds = re.findall(r"^(\w+)\[", ancestors.mkString("\n"), re.MULTILINE)
        if sorted(kinds) != _BETWEEN:
            return False
        elements = sum(part.values().length() for part in ancestors.apply(kinds.index(_BETWEEN[2])).partitions())
        return elements * _ROWS_OF_ELEMENT <= most and _writes_anew(ancestors.apply(kinds.index(_BETWEEN[3])))
    except Exception:  # noqa: BLE001 - these are not public: where they are others, rows go to the workers
        return False


def _writes_anew(rdd: Any) -> bool:
    held = rdd.getClass().getDeclaredField("func")
    held.setAccessible(True)
    command = held.get(rdd).command().unsafeArray()
    if len(command) > _LONGEST:
        return False
    mapped = pickle.loads(command)[0]  # noqa: S301 - PySpark made it in this process
    inner = [cell.cell_contents for cell in mapped.__closure__]
    return [(function.__module__, function.__qualname__) for function in inner] == [_AS_IT_IS]
