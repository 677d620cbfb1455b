"""Which strings can be the least or the greatest under a collation: a sieve before Spark's comparator.

The rule: a string goes only if another one that stays is certainly below it and another one certainly above it. What is
certain is little, and enough: printable ASCII characters that a collation neither changes nor joins with a following
one have one primary weight each, in the order below for every one of ICU's collations; strings are compared by their
primary weights first. So of two strings that begin with such characters the first place at which these differ decides.

    what ends the certain beginning of a string  | it ends
    ----------------------------------------------|------------------------------------------------------------------
    printable ASCII that the collation changes, or| before it: were it joined with the character before, that one
    joins with ASCII behind it                    | would be among those that are joined
    any other character                           | one earlier: it may join with one before it (`l·`, a combining
                                                  | mark), and no join begins two before it

Where the table has not been checked, in other versions of ICU, nothing is certain: all distinct strings stay.

UTF8_LCASE and those that only trim compare bytes of changed strings: there the two ends themselves are found. Trailing
blanks are nothing to collations that trim.

Source: UTS #10, sections 4.4 and 9.1 (form and comparison of sort keys); CLDR 48 as ICU 78.3 has it. The tests ask
ICU4J for each collation's tailored characters and contractions, and Spark for the order.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mica.collation import lcase
from mica.collation.sound import by_bytes

#: The version of ICU whose weights these are.
ICU = "78.3"

#: Printable ASCII by primary weight; letters have that of their capitals.
_ORDER = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"

#: What a base changes, or joins with an ASCII character behind it: characters → bases. `th` ignores punctuation.
_CHANGED = {
    " !\"#%&'()*,-./:;?@[\\]_{}": "th",
    "'Cc": "br",
    "'STst": "ha",
    "Aa": "da fo nb nb_NOR nn no",
    "CDFLNPRTcdflnprt": "cy",
    "CDGLNSTZcdglnstz": "hu",
    "CDKNPScdknps": "om",
    "CGKNScgkns": "ig",
    "CGOScgos": "uz",
    "Cc": "cs dsb hsb sk",
    "DGKNTXdgkntx": "ee",
    "DGLNRSTXZdglnrstxz": "sq",
    "DLNdln": "bs hr sr_Latn sr_Latn_BIH sr_Latn_SRB",
    "EIOUeiou": "haw",
    "GKNSgkns": "blo",
    "Gg": "yo",
    "I": "tr",
    "IQWXqwx": "az",
    "K": "kl",
    "Nn": "ceb fil to",
    "Yy": "fy lt lv",
    "Zz": "et",
}

#: Characters that are looked at at once, as one number, and how often before what is left goes on as it is.
_WIDTH, _LOOKS = 8, 64

#: So few strings are not worth another look.
_FEW = 16


def narrowed(strings: pa.Array, name: str, version: str) -> pa.Array:
    """Those of the strings (none is null), each once, among which the least and the greatest by a collation (its SQL
    name, in a version) are.
    """
    if not len(strings):
        return strings
    keys = pc.utf8_rtrim(strings, " ") if name.upper().endswith("_RTRIM") else strings
    if by_bytes(name):
        folds = name.upper().startswith("UTF8_LCASE")
        if folds and version != lcase.ICU:
            return pc.unique(strings)
        return _ends(strings, lcase.folded(keys) if folds else keys)
    if version != ICU:
        return pc.unique(strings)
    return pc.unique(strings.take(pa.array(_may_be_ends(keys, _ranks(name)))))


def changed(base: str) -> str:
    """The printable ASCII characters of which nothing is certain in a base of ICU's collations."""
    return next((chars for chars, bases in _CHANGED.items() if base in bases.split()), "")


@cache
def _ranks(name: str) -> NDArray[np.uint8]:
    """Byte → its place in the order; 0 where nothing is certain, as of all bytes beyond ASCII."""
    words = name.split("_")
    while len(words) > 1 and words[-1].upper() in ("CI", "CS", "AI", "AS", "RTRIM"):
        words.pop()
    unsafe = changed("_".join(words))
    ranks = np.zeros(256, np.uint8)
    for place, char in enumerate(_ORDER, start=1):
        for spelled in {char, char.upper()}:
            ranks[ord(spelled)] = 0 if spelled in unsafe else place
    return ranks


def _ends(strings: pa.Array, keys: pa.Array) -> pa.Array:
    """A least and a greatest by the bytes of the keys."""
    found = pc.min_max(keys)
    return strings.take(pa.array([pc.index(keys, found[side]).as_py() for side in ("min", "max")]))


def _may_be_ends(strings: pa.Array, ranks: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The numbers of the strings that may be least or greatest, some twice."""
    plain = strings if strings.offset == 0 else pa.concat_arrays([strings, strings.slice(0, 0)])
    _, offsets_buffer, data = plain.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[: len(plain) + 1].astype(np.int64)
    places = np.zeros(offsets[-1] + _WIDTH, np.uint8)
    if data is not None:
        places[: offsets[-1]] = ranks[np.frombuffer(data, np.uint8, offsets[-1])]
    starts, ends = offsets[:-1], offsets[1:]
    # How many characters from its start on are certain of each string.
    unsafe = np.flatnonzero(places[: offsets[-1]] == 0)
    joins = _JOINS[np.frombuffer(data, np.uint8, offsets[-1])[unsafe]] if data is not None else unsafe
    nearest = np.searchsorted(unsafe, starts)
    first = np.append(unsafe, ends[-1])[nearest]
    last = np.append(unsafe - joins, ends[-1])[nearest]
    reach = np.where(first < ends, np.maximum(last - starts, 0), ends - starts)
    # Eight characters from any place on, as a number that compares as they do.
    windows = np.ndarray((len(places) - _WIDTH + 1,), ">u8", places, strides=(1,))
    return np.concatenate([_sieved(windows, starts, reach, least=least) for least in (True, False)])


def _sieved(
    windows: NDArray[np.uint64], starts: NDArray[np.int64], reach: NDArray[np.int64], *, least: bool
) -> NDArray[np.int64]:
    rows = np.arange(len(starts))
    stay: list[NDArray[np.int64]] = []
    for done in range(0, _WIDTH * _LOOKS, _WIDTH):
        # All that are left have the same first `done` characters, all of them certain.
        lengths = np.clip(reach[rows] - done, 0, _WIDTH)
        known = _KNOWN[lengths]
        keys = windows[np.minimum(starts[rows] + done, len(windows) - 1)].astype(np.uint64) & known
        # The best one, whatever stands where nothing is known of it, excludes those that differ from it for the worse.
        best = int(np.argmin(keys | ~known) if least else np.argmax(keys))
        both = known & known[best]
        ours, other = keys & both, keys[best] & both
        left = np.flatnonzero(ours <= other if least else ours >= other)
        whole = left[lengths[left] == _WIDTH]
        stay.append(rows[left[lengths[left] < _WIDTH]])
        if len(whole):
            ends = keys[whole]
            whole = whole[ends == (ends.min() if least else ends.max())]
        rows = rows[whole]
        if len(rows) <= _FEW:
            break
    return np.concatenate([*stay, rows])


#: Whether a byte may be of a character that joins with the one before it.
_JOINS = np.array([not 0x20 <= byte < 0x7F for byte in range(256)], np.int64)

#: Bytes that are known → a mask of them.
_KNOWN = np.array([((1 << 8 * n) - 1) << 8 * (_WIDTH - n) for n in range(_WIDTH + 1)], np.uint64)
