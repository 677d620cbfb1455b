"""Any edit of any Variant at any path gives what a few lines of Python give; in the campaign also what Spark 4.3 gives.

Rows of several shapes stand in one batch, so that a row never sees what belongs to another.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.schema.ddl import parse_ddl
from mica.variant import from_json, kernel
from mica.variant.path import VariantPath
from mica.variant.values import to_json
from tests.support import CAMPAIGN

KEYS = st.sampled_from(["a", "b", "c", "é", "\U0001f600", "value", ""])
SCALARS = st.none() | st.booleans() | st.integers(-300, 2**40) | st.text("aé😀'\\\"", max_size=70) | st.just(1.5)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=15
)
STEPS = st.lists(KEYS | st.integers(0, 5), max_size=4).map(tuple)
FAILED = object()


def put(document: Any, steps: tuple[Any, ...], new: Any, edit: str, create: bool) -> Any:
    """The document after an edit, or FAILED."""
    if not steps:
        if edit == "append":
            return [*document, new] if isinstance(document, list) else FAILED
        return new
    step, rest = steps[0], steps[1:]
    if not isinstance(document, list if isinstance(step, int) else dict):
        return FAILED
    there = step < len(document) if isinstance(step, int) else step in document
    made = copy.copy(document)
    if there and edit == "insert" and not rest:
        if isinstance(step, str):
            return FAILED
        made.insert(step, new)
    elif there:
        made[step] = put(document[step], rest, new, edit, create)
        return FAILED if made[step] is FAILED else made
    elif edit != "append" and create:
        value = new
        for inner in reversed(rest):
            value = [*[None] * inner, value] if isinstance(inner, int) else {inner: value}
        if isinstance(step, int):
            made += [*[None] * (step - len(document)), value]
        else:
            made[step] = value
    return made


def deleted(document: Any, steps: tuple[Any, ...]) -> Any:
    step, rest = steps[0], steps[1:]
    if not isinstance(document, list if isinstance(step, int) else dict):
        return document
    if not (step < len(document) if isinstance(step, int) else step in document):
        return document
    made = copy.copy(document)
    if rest:
        made[step] = deleted(document[step], rest)
    else:
        del made[step]
    return made


def stripped(document: Any, arrays: bool) -> Any:
    if isinstance(document, dict):
        return {key: stripped(value, arrays) for key, value in document.items() if value is not None}
    if isinstance(document, list):
        return [stripped(value, arrays) for value in document if value is not None or not arrays]
    return document


def variants(documents: list[Any]) -> pa.Array:
    return from_json(pa.array([json.dumps(document, ensure_ascii=False) for document in documents]))


def edited(batch: pa.RecordBatch, name: Any, paths: list[Any], flag: bool = True) -> list[Any]:
    made, failed = kernel.edit(batch, name, paths, flag=flag).columns
    kernel.validate(pa.record_batch([made], names=["v"]))
    texts = to_json(made).to_pylist()
    return [FAILED if f else json.loads(text) for text, f in zip(texts, failed.to_pylist(), strict=True)]


def names_in(value: Any) -> set[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (set(value) if isinstance(value, dict) else set()).union(*map(names_in, inner))


@given(
    st.lists(st.tuples(DOCUMENTS, DOCUMENTS), min_size=1, max_size=5),
    STEPS,
    st.sampled_from(["set", "insert", "append"]),
    st.booleans(),
)
def test_put(rows: list[tuple[Any, Any]], steps: tuple[Any, ...], edit: str, create: bool) -> None:
    if edit == "insert" and not steps:
        return
    batch = pa.record_batch([variants([d for d, _ in rows]), variants([n for _, n in rows])], names=["v", "new"])
    expected = [put(document, steps, new, edit, create or edit == "insert") for document, new in rows]
    assert edited(batch, edit, [steps], create) == expected


@given(st.lists(DOCUMENTS, min_size=1, max_size=5), st.lists(STEPS.filter(bool), max_size=3), st.booleans())
def test_delete_and_strip(rows: list[Any], paths: list[tuple[Any, ...]], arrays: bool) -> None:
    batch = pa.record_batch([variants(rows)], names=["v"])
    expected = rows
    for steps in paths:
        expected = [deleted(document, steps) for document in expected]
    assert edited(batch, "delete", paths) == expected
    assert edited(batch, "strip_nulls", [], arrays) == [stripped(document, arrays) for document in rows]
    # What is deleted is in no dictionary.
    made = kernel.edit(batch, "delete", paths).column(0).to_pylist()
    for row, left, before in zip(made, expected, rows, strict=True):
        gone = {name for name in names_in(before) - names_in(left) if len(name) > 3}
        assert not any(name.encode() in row["metadata"] for name in gone)


def example(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(6) if depth else rng.randrange(4)
    if kind == 4:
        return [example(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return {rng.choice("abcd"): example(rng, depth - 1) for _ in range(rng.randrange(4))}
    return rng.choice([None, True, 7, 1.5, "x" * rng.randrange(70), 2**40])


def call(rng: random.Random) -> str:
    steps = tuple(rng.choice(["a", "b", "c", 0, 1, 3]) for _ in range(rng.randrange(1, 4)))
    path, other = VariantPath(steps).spark(), VariantPath(steps[:1]).spark()
    new = rng.choice(["1", "'text'", "1.50", "parse_json('{\"k\":[1,null]}')", "true", "DATE'2020-01-01'", "v"])
    return rng.choice(
        [
            f"try_variant_set(v, '{path}', {new})", f"try_variant_set(v, '{path}', {new}, false)",
            f"try_variant_insert(v, '{path}', {new})", f"try_variant_array_append(v, '{path}', {new})",
            f"variant_delete(v, '{path}', '{other}')", "variant_strip_nulls(v)", "variant_strip_nulls(v, false)",
        ]
    )  # fmt: skip


if CAMPAIGN:  # Spark 4.3 has an environment of its own

    @pytest.mark.timeout(3600)
    def test_as_spark_4_3(tmp_path: Path, rng: random.Random) -> None:
        from benchmarks.environments import python
        from tests.campaign.engines import Spark

        spark = Spark("Spark 4.3.0", str(python("spark43")))
        try:
            for case in range(40):
                documents = [example(rng, 3) for _ in range(40)]
                calls = [call(rng) for _ in range(25)]
                file = spark.write([json.dumps(d) for d in documents], tmp_path / str(case), "unshredded")
                theirs = spark._ask(path=file, select=[f"to_json({text})" for text in calls])
                array = variants(documents)
                for i, text in enumerate(calls):
                    ours = to_json(evaluate(bind_value(text, parse_ddl("v variant")), [array])).to_pylist()
                    assert ours == [row[i] for row in theirs], text
        finally:
            spark.close()
