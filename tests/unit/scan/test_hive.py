"""Partition columns from the names of directories."""

from __future__ import annotations

import pytest

from mica.scan import hive
from mica.schema.ddl import type_to_ddl


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("a.parquet", {}),
        ("day=2026-11-20/a.parquet", {"day": "2026-11-20"}),
        ("a/k=1/b/j=x%3Dy/k.parquet", {"k": "1", "j": "x=y"}),
        ("k=__HIVE_DEFAULT_PARTITION__/a.parquet", {"k": None}),
        ("k=/a.parquet", {"k": ""}),
        ("k=a=b/a.parquet", {"k": "a=b"}),
        ("gr%C3%B6%C3%9Fe=é/a.parquet", {"größe": "é"}),
        ("=x/k=1.parquet", {}),
        ("k=%FF/a.parquet", {"k": "ÿ"}),
    ],
)
def test_values(path: str, values: dict[str, str | None]) -> None:
    assert hive.values_of(path) == values


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (["1", "-20", "0"], "INT"),
        (["1", str(1 << 31)], "BIGINT"),
        ([str(1 << 63)], "STRING"),
        (["01"], "STRING"),
        (["-0"], "STRING"),
        (["1", "1.5", "1e+16", "NaN"], "DOUBLE"),
        (["1.50"], "STRING"),
        (["1.2.3"], "STRING"),
        (["10.0.0.1", "1.5"], "STRING"),
        (["."], "STRING"),
        (["1e5.5"], "STRING"),
        (["nan"], "STRING"),
        (["2024-02-29", "1969-12-31"], "DATE"),
        (["2023-02-29"], "STRING"),
        (["2024-02-29 10:00:00", "2024-02-29T10:00:00.5Z"], "TIMESTAMP"),
        (["2024-02-29", "x"], "STRING"),
        (["true"], "STRING"),
        ([], "STRING"),
    ],
)
def test_types(texts: list[str], type_: str) -> None:
    assert type_to_ddl(hive.type_of(texts)) == type_


def test_nulls_have_no_type_and_columns_come_as_they_appear() -> None:
    found = hive.columns_of([{"b": None, "a": "1"}, {"b": "2", "c": ""}, {}])
    assert {name: type_to_ddl(type_) for name, type_ in found.items()} == {"b": "INT", "a": "INT", "c": "STRING"}


def test_a_column_whose_directories_differ_in_case_has_one_name() -> None:
    paths = ["K=1/a.parquet", "k=2/b.parquet", "c.parquet"]
    assert hive.values_of_all(paths) == [{"K": "1"}, {"K": "2"}, {}]
