"""Identifiers are parsed strictly and compared without regard to case."""

import pytest

from mica.collation.identifier import Identifier, parse
from mica.errors import UserError


def test_parts() -> None:
    assert parse("icu.UNICODE_CI.78.3") == Identifier("icu", "UNICODE_CI", "78.3")
    assert parse("ICU.de_DE") == Identifier("ICU", "de_DE", None)
    assert str(parse("ICU.de_DE.75.1")) == "ICU.de_DE.75.1"
    assert parse("icu.de").same(parse("icu.DE"))
    assert not parse("icu.de").same(parse("icu.de.78.3"))
    assert parse("icu.de.78.3").at(None).same(parse("ICU.De"))


@pytest.mark.parametrize(
    "text", ["", "icu", "icu.", ".de", "icu.de.", "icu.de.78.", "icu.de..3", "icu..78", "icu. .1", "icu.de de"]
)
def test_empty_parts(text: str) -> None:
    with pytest.raises(UserError) as raised:
        parse(text)
    assert raised.value.code == "INVALID_COLLATION"
