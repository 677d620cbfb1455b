"""The domain of collations is a hint: ours is added, the rest stays, and what cannot be read is left alone."""

import pytest

from mica.errors import CorruptDataError
from mica.log.domains import with_versions, write_versions

#: The example of the RFC, "Collation versions".
RFC = '{"writeVersions":{"ICU.en_US":["72","73"]}}'


def test_versions_are_added_and_others_kept() -> None:
    assert write_versions(RFC, "t") == {"ICU.en_US": ["72", "73"]}
    first = with_versions(None, ["icu.de", "icu.de"], "78.3", "t")
    assert first == '{"writeVersions":{"icu.de":["78.3"]}}'
    assert with_versions(first, ["ICU.DE"], "78.3", "t") is None
    more = with_versions('{"x":1,"writeVersions":{"ICU.en_US":["72"]}}', ["icu.en_us", "icu.sv"], "78.3", "t")
    assert more == '{"x":1,"writeVersions":{"ICU.en_US":["72","78.3"],"icu.sv":["78.3"]}}'


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "not JSON"), ("[]", "not an object"), ('{"writeVersions":5}', "not an object"),
     ('{"writeVersions":{"de":[]}}', "not a collation identifier"),
     ('{"writeVersions":{"icu.de":["1"],"ICU.de":["2"]}}', "differ only in case"),
     ('{"writeVersions":{"icu.de":"78.3"}}', "the versions"), ('{"writeVersions":{"icu.de":["78."]}}', "the versions")],
)  # fmt: skip
def test_what_cannot_be_read_names_the_table(text: str, why: str) -> None:
    for ask in (lambda: write_versions(text, "/data/t"), lambda: with_versions(text, ["icu.de"], "78.3", "/data/t")):
        with pytest.raises(CorruptDataError, match=why) as raised:
            ask()
        assert raised.value.code == "INVALID_DOMAIN"
        assert "/data/t" in raised.value.message
