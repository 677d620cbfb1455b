"""UTF8_LCASE without a JVM: maps strings to strings whose bytes compare as in Spark under that collation.

The rule: exact or not at all. Each code point is replaced by its lower case from the table below (ICU 78.3), U+0130 by
two code points, a final sigma by a sigma. Nothing else matters: no accents, no context, no normal form. The byte order
of the results is the order of the collation, so any comparison of bytes works.

Source: Spark's `CollationAwareUTF8String` and ICU's `UCharacter.toLowerCase`; tests compare all code points with Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array, to_numpy
from mica.collation.identifier import parse
from mica.collation.names import LCASE

#: The ICU version of the table.
ICU = "78.3"

#: `FROM+DELTA`, `FROM-TO+DELTA`, or `FROM-TO/2+DELTA` for every second one; all hexadecimal.
_RANGES = (
    "41-5A+20 C0-D6+20 D8-DE+20 100-12E/2+1 132-136/2+1 139-147/2+1 14A-176/2+1 178-79 179-17D/2+1 181+D2 "
    "182-184/2+1 186+CE 187+1 189-18A+CD 18B+1 18E+4F 18F+CA 190+CB 191+1 193+CD 194+CF 196+D3 197+D1 198+1 19C+D3 "
    "19D+D5 19F+D6 1A0-1A4/2+1 1A6+DA 1A7+1 1A9+DA 1AC+1 1AE+DA 1AF+1 1B1-1B2+D9 1B3-1B5/2+1 1B7+DB 1B8+1 1BC+1 "
    "1C4+2 1C5+1 1C7+2 1C8+1 1CA+2 1CB-1DB/2+1 1DE-1EE/2+1 1F1+2 1F2-1F4/2+1 1F6-61 1F7-38 1F8-21E/2+1 220-82 "
    "222-232/2+1 23A+2A2B 23B+1 23D-A3 23E+2A28 241+1 243-C3 244+45 245+47 246-24E/2+1 370-372/2+1 376+1 37F+74 "
    "386+26 388-38A+25 38C+40 38E-38F+3F 391-3A1+20 3A3-3AB+20 3C2+1 3CF+8 3D8-3EE/2+1 3F4-3C 3F7+1 3F9-7 3FA+1 "
    "3FD-3FF-82 400-40F+50 410-42F+20 460-480/2+1 48A-4BE/2+1 4C0+F 4C1-4CD/2+1 4D0-52E/2+1 531-556+30 "
    "10A0-10C5+1C60 10C7+1C60 10CD+1C60 13A0-13EF+97D0 13F0-13F5+8 1C89+1 1C90-1CBA-BC0 1CBD-1CBF-BC0 1E00-1E94/2+1 "
    "1E9E-1DBF 1EA0-1EFE/2+1 1F08-1F0F-8 1F18-1F1D-8 1F28-1F2F-8 1F38-1F3F-8 1F48-1F4D-8 1F59-1F5F/2-8 1F68-1F6F-8 "
    "1F88-1F8F-8 1F98-1F9F-8 1FA8-1FAF-8 1FB8-1FB9-8 1FBA-1FBB-4A 1FBC-9 1FC8-1FCB-56 1FCC-9 1FD8-1FD9-8 "
    "1FDA-1FDB-64 1FE8-1FE9-8 1FEA-1FEB-70 1FEC-7 1FF8-1FF9-80 1FFA-1FFB-7E 1FFC-9 2126-1D5D 212A-20BF 212B-2046 "
    "2132+1C 2160-216F+10 2183+1 24B6-24CF+1A 2C00-2C2F+30 2C60+1 2C62-29F7 2C63-EE6 2C64-29E7 2C67-2C6B/2+1 "
    "2C6D-2A1C 2C6E-29FD 2C6F-2A1F 2C70-2A1E 2C72+1 2C75+1 2C7E-2C7F-2A3F 2C80-2CE2/2+1 2CEB-2CED/2+1 2CF2+1 "
    "A640-A66C/2+1 A680-A69A/2+1 A722-A72E/2+1 A732-A76E/2+1 A779-A77B/2+1 A77D-8A04 A77E-A786/2+1 A78B+1 A78D-A528 "
    "A790-A792/2+1 A796-A7A8/2+1 A7AA-A544 A7AB-A54F A7AC-A54B A7AD-A541 A7AE-A544 A7B0-A512 A7B1-A52A A7B2-A515 "
    "A7B3+3A0 A7B4-A7C2/2+1 A7C4-30 A7C5-A543 A7C6-8A38 A7C7-A7C9/2+1 A7CB-A567 A7CC-A7DA/2+1 A7DC-A641 A7F5+1 "
    "FF21-FF3A+20 10400-10427+28 104B0-104D3+28 10570-1057A+27 1057C-1058A+27 1058C-10592+27 10594-10595+27 "
    "10C80-10CB2+40 10D50-10D65+20 118A0-118BF+20 16E40-16E5F+20 16EA0-16EB8+1B 1E900-1E921+22 "
)

#: The only code point that becomes two: dotted capital I becomes i and a combining dot above.
_DOTTED, _DOTTED_AS = 0x130, (0x69, 0x307)


def folded(strings: pa.Array) -> pa.Array:
    """Maps strings to their comparison form, `string` like the argument; null stays null. Needs about 20 times the
    memory of the text beyond ASCII.
    """
    if len(strings) == 0 or strings.null_count == len(strings):
        return strings
    if pc.all(pc.string_is_ascii(strings)).as_py():
        return pc.ascii_lower(strings)
    plain = strings if strings.offset == 0 else pa.concat_arrays([strings, arrow_array([], strings.type)])
    validity, offsets_buffer, data = plain.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[: len(plain) + 1].astype(np.int64)
    text = data.to_pybytes()[offsets[0] : offsets[-1]] if data is not None else b""
    points = np.frombuffer(text.decode("utf-8").encode("utf-32-le"), np.uint32)
    # The first byte of each code point; then, per string, the number of code points before it.
    raw = np.frombuffer(text, np.uint8)
    before = np.concatenate(([0], np.cumsum((raw & 0xC0) != 0x80)))[offsets - offsets[0]]
    lowered = _table()[points]
    dotted = np.flatnonzero(points == _DOTTED)
    if len(dotted):
        lowered[dotted] = _DOTTED_AS[0]
        lowered = np.insert(lowered, dotted + 1, _DOTTED_AS[1])
        before = before + np.searchsorted(dotted, before)
    ends = np.concatenate(([0], np.cumsum(_utf8_bytes(lowered))))[before]
    body = lowered.astype("<u4").tobytes().decode("utf-32-le").encode()
    if ends[-1] > np.iinfo(np.int32).max:
        half = len(plain) // 2
        return pa.concat_arrays([folded(plain.slice(0, half)), folded(plain.slice(half))])
    buffers = [validity, pa.py_buffer(ends.astype(np.int32).tobytes()), pa.py_buffer(body)]
    return pa.Array.from_buffers(pa.string(), len(plain), buffers, null_count=plain.null_count)


def fold(text: str) -> str:
    """Maps one string to its comparison form."""
    found: str = folded(arrow_array([text], pa.string()))[0].as_py()
    return found


def ends(strings: pa.Array) -> pa.Array:
    """Returns a smallest and a greatest string; the strings have no nulls. Empty for no strings."""
    if not len(strings):
        return strings
    lowered = folded(strings)
    found = pc.min_max(lowered)
    return strings.take(arrow_array([pc.index(lowered, found[side]).as_py() for side in ("min", "max")]))


class InProcess:
    """The comparator for UTF8_LCASE, without a Spark session."""

    version = ICU

    def judges(self, collation: str) -> bool:
        """Whether the collation (an identifier in Spark's spelling) is UTF8_LCASE."""
        return parse(collation).same(LCASE)

    def signs(self, columns: Sequence[pa.Array], asked: Sequence[tuple[int, str, str]]) -> list[pa.Array]:
        """As `Comparator.signs`, for UTF8_LCASE."""
        lowered = [folded(column) for column in columns]
        found = []
        for column, _, constant in asked:
            other = fold(constant)
            above = pc.greater(lowered[column], other).cast(pa.int8())
            found.append(pc.subtract(above, pc.less(lowered[column], other).cast(pa.int8())))
        return found

    def compared(self, left: pa.Array, right: pa.Array, collations: Sequence[str]) -> NDArray[np.int8]:  # noqa: ARG002 - it is this one
        """As `Comparator.compared`, for UTF8_LCASE."""
        a, b = folded(left), folded(right)
        return to_numpy(pc.subtract(pc.greater(a, b).cast(pa.int8()), pc.less(a, b).cast(pa.int8())))

    def classes(self, strings: pa.Array, collation: str) -> pa.Array:  # noqa: ARG002 - it is this one
        """As `Comparator.classes`, for UTF8_LCASE."""
        return folded(strings)


def _utf8_bytes(points: NDArray[np.uint32]) -> NDArray[np.int64]:
    sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    return sizes.astype(np.int64)


@cache
def _table() -> NDArray[np.uint32]:
    table = np.arange(0x110000, dtype=np.uint32)
    for text in "".join(_RANGES).split():
        at = max(text.find("+"), text.rfind("-") if "+" not in text else -1)
        span, delta = text[:at], int(text[at:], 16)
        span, _, step = span.partition("/")
        first, _, last = span.partition("-")
        points = np.arange(int(first, 16), int(last or first, 16) + 1, int(step or 1))
        table[points] = (points + delta).astype(np.uint32)
    return table
