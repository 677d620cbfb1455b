"""Names of collations are parsed strictly and compared without regard to case."""

import pytest

from mica.collation.identifier import Identifier, from_spark, parse
from mica.errors import UserError


def test_parts() -> None:
    assert parse("icu.UNICODE_CI.78.3") == Identifier("icu", "UNICODE_CI", "78.3")
    assert parse("ICU.de_DE") == Identifier("ICU", "de_DE", None)
    assert str(parse("ICU.de_DE.75.1")) == "ICU.de_DE.75.1"
    assert parse("ICU.de").same(parse("icu.DE"))
    assert not parse("icu.de").same(parse("icu.de.78.3"))


@pytest.mark.parametrize("text", ["", "icu", "icu.", ".de", "icu.de.", "icu.de.78.", "icu.de..3", "icu..78"])
def test_empty_parts(text: str) -> None:
    with pytest.raises(UserError) as raised:
        parse(text)
    assert raised.value.code == "INVALID_COLLATION"


@pytest.mark.parametrize(
    ("name", "identifier"),
    [("de", "icu.de"), ("unicode_ci_ai", "icu.UNICODE_CI_AI"), ("utf8_lcase", "spark.UTF8_LCASE"),
     ("SR_CYRL_SRB_ci_rtrim", "icu.sr_Cyrl_SRB_CI_RTRIM"), ("EN_usa", "icu.en_USA")],
)  # fmt: skip
def test_sparks_names_take_sparks_spelling(name: str, identifier: str) -> None:
    assert str(from_spark(name)) == identifier
