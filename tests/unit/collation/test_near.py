"""Strings are ordered near their collation: exactly where it compares bytes, else without case and accents."""

import pyarrow as pa
import pytest

from mica.collation.near import placed


@pytest.mark.parametrize(
    ("collation", "keys"),
    [
        ("spark.UTF8_LCASE", ["b", "ä ", None, "straße", "é", "i\u0307"]),
        ("SPARK.utf8_lcase.78.3", ["b", "ä ", None, "straße", "é", "i\u0307"]),
        ("spark.UTF8_LCASE_RTRIM", ["b", "ä", None, "straße", "é", "i\u0307"]),
        ("spark.UTF8_BINARY_RTRIM", ["B", "Ä", None, "Straße", "É", "İ"]),
        ("icu.UNICODE", ["b", "a ", None, "strasse", "e", "i"]),
        ("ICU.de_DE_CI_RTRIM", ["b", "a", None, "strasse", "e", "i"]),
    ],
)
def test_keys(collation: str, keys: list[str | None]) -> None:
    strings = pa.array(["B", "Ä ", None, "Straße", "É", "İ"])
    for values in (strings, strings.cast(pa.string_view()), pa.concat_arrays([strings, strings]).slice(6)):
        assert placed(values, collation).to_pylist() == keys
