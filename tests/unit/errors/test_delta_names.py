"""delta-spark's names are errors that name mica's; mica's names are there."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest

import mica
from mica.errors import OtherNameError
from mica.errors.delta_names import MERGE, TABLE

_CALL = re.compile(r"(?<![\w(])(\w+)\(")


def test_a_name_of_delta_spark_is_answered_with_micas(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT")
    merge = table.merge([{"id": 1}], "target.id = source.id")
    with pytest.raises(
        OtherNameError, match=r"no toDF, which is delta-spark's name\nmica's is to_df\(spark\)"
    ) as caught:
        table.toDF()  # type: ignore[attr-defined]
    assert caught.value.code == "OTHER_NAME"
    with pytest.raises(AttributeError, match=r"when_matched_update_all\(condition\)"):
        merge.whenMatchedUpdateAll()  # type: ignore[attr-defined]
    with pytest.raises(OtherNameError, match=r"mica\.Table\.open"):
        mica.Table.forPath  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        table.other  # type: ignore[attr-defined]  # noqa: B018


def test_nobody_else_sees_the_names(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT")
    merge = table.merge([{"id": 1}], "target.id = source.id").when_not_matched_insert_all()
    for one, others in ((table, TABLE), (merge, MERGE)):
        assert not any(hasattr(one, name) for name in others)
        assert not others.keys() & {*dir(one)}
        assert copy.copy(one) is not None
    assert pickle.loads(pickle.dumps(mica.errors.OtherNameError("OTHER_NAME", "x"))).code == "OTHER_NAME"
    assert merge.execute().metrics["numTargetRowsInserted"] == 1


@pytest.mark.parametrize(("own", "others"), [(mica.Table, TABLE), (mica.Merge, MERGE)])
def test_the_hints_name_calls_that_there_are(own: type, others: dict[str, str]) -> None:
    for hint in others.values():
        for name in _CALL.findall(hint.replace("mica.Table.", "")):
            assert hasattr(own, name) or hasattr(mica.Table, name), hint
