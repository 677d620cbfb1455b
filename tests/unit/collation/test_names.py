"""Spark's names take Spark's spelling; others' are mapped where a table says so, and nowhere else."""

import pytest

from mica.collation.identifier import parse
from mica.collation.names import all_names, built_in, from_sql, is_binary, read, to_sql
from mica.errors import UserError


@pytest.mark.parametrize(
    ("name", "identifier"),
    [("de", "icu.de"), ("unicode_ci_ai", "icu.UNICODE_CI_AI"), ("utf8_lcase", "spark.UTF8_LCASE"),
     ("SR_CYRL_SRB_ci_rtrim", "icu.sr_Cyrl_SRB_CI_RTRIM"), ("EN_usa", "icu.en_USA"), ("as_as", "icu.as"),
     ("as_ai_ci", "icu.as_CI_AI"), ("UTF8_binary_rtrim", "spark.UTF8_BINARY_RTRIM")],
)  # fmt: skip
def test_sparks_names_take_sparks_spelling(name: str, identifier: str) -> None:
    assert str(from_sql(name)) == identifier
    assert str(read(name)) == identifier
    assert to_sql(parse(identifier)) == identifier.split(".")[1]


@pytest.mark.parametrize("name", ["", "de_DE", "de_CI_CI", "de_CI_CS", "UNICODE_XX", "UTF8_LCASE_CI", "xx", "de__CI"])
def test_what_spark_lacks_is_unknown(name: str) -> None:
    with pytest.raises(UserError) as raised:
        from_sql(name)
    assert raised.value.code == "UNKNOWN_COLLATION"


def test_what_is_built_in_may_say_where() -> None:
    assert [built_in(name.split(".")) for name in ("de", "System.builtin.de", "builtin.de", "a.b.de")] == [
        "de", "de", None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("other", "ours"),
    [("ICU.de_DE", "de"), ("ICU.en_US", "en_USA"), ("icu.sv_SE_CI", "sv_CI"), ("ICU.UNICODE_CI.72", "UNICODE_CI"),
     ("SPARK.utf8_lcase", "UTF8_LCASE"), ("ICU.xx_YY", None), ("icu.UTF8_LCASE", None), ("spark.de", None),
     ("oracle.de", None)],
)  # fmt: skip
def test_other_systems_names(other: str, ours: str | None) -> None:
    assert to_sql(parse(other)) == ours


def test_there_are_as_many_as_spark_has() -> None:
    names = list(all_names())
    assert len(names) == len({n.lower() for n in names}) == 1164
    assert is_binary(parse("SPARK.utf8_binary"))
    assert not is_binary(parse("spark.UTF8_BINARY_RTRIM"))
