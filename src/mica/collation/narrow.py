"""A filter before Spark's comparator: what is certain about the order of strings without it.

The rule: every result equals the comparator's; where the order is not certain there is no result. Of many strings, only
possible minima and maxima remain; for a string and a constant the sign is known or null. Little is certain,
and it is enough: printable ASCII characters that a collation neither tailors nor contracts with a following one have
one primary weight each, in the order below for every ICU collation; so have the letters below, in bases that do not
tailor them. Strings are compared by their primary weights first: if two begin with such characters, the first
position at which these differ decides.

    what ends the certain prefix of a string      | it ends
    ----------------------------------------------|------------------------------------------------------------------
    printable ASCII that the collation tailors, or| before it: were it contracted with the previous character, that
    contracts with ASCII after it                 | one would be among those that are contracted
    any other character                           | one earlier: it may contract with the previous one (`l·`, a
                                                  | combining mark), and no contraction begins two before it

In other versions of ICU, for which the table has not been checked, nothing is certain.

UTF8_LCASE and the collations that only trim compare bytes of mapped strings: everything is certain there. Collations
that trim ignore trailing blanks.

Source: UTS #10, sections 4.4 and 9.1 (form and comparison of sort keys); CLDR 48 as in ICU 78.3. The tests read
each collation's tailored characters and contractions from ICU4J, and compare the order with Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array, to_numpy
from mica.collation import lcase
from mica.collation.names import base_of
from mica.collation.trust import by_bytes
from mica.records import dataclass

#: The ICU version of these weights.
ICU = "78.3"

#: Printable ASCII by primary weight; letters have the weight of their capitals.
_ORDER = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"

#: Letters by primary weight, for bases that do not tailor, contract or move any of them: groups of one weight, after
#: blanks, signs and digits. Characters with more than one weight (`æ`) are excluded.
_LETTERS = (
    "AaÀÁÂÃÄÅàáâãäåĀāĂăĄą Bb CcÇçĆćĈĉĊċČč DdÐðĎďĐđ EeÈÉÊËèéêëĒēĔĕĖėĘęĚě Ff GgĜĝĞğĠġĢģ HhĤĥĦħ IiÌÍÎÏìíîïĨĩĪīĬĭĮįİ "
    "ı JjĴĵ KkĶķ LlĹĺĻļĽľĿŀŁł Mm NnÑñŃńŅņŇň Ŋŋ OoÒÓÔÕÖØòóôõöøŌōŎŏŐő Pp Qq ĸ RrŔŕŖŗŘř SsŚśŜŝŞşŠšſ TtŢţŤť Ŧŧ "
    "UuÙÚÛÜùúûüŨũŪūŬŭŮůŰűŲų Vv WwŴŵ Xx YyÝýÿŶŷŸ ZzŹźŻżŽž Þþ ŉ ΆΑάα Ββ Γγ Δδ ΈΕέε Ζζ ΉΗήη Θθ ΊΐΙΪίιϊ Κκ Λλ Μμ Νν "
    "Ξξ ΌΟοό Ππ Ρρ Σςσ Ττ ΎΥΫΰυϋύ Φφ Χχ Ψψ ΏΩωώ Аа Бб Вв ЃГгѓ Дд Ђђ ЀЁЕеѐё Єє Жж Зз Ѕѕ ЍИиѝ ІЇії Йй Јј ЌКкќ Лл Љљ "
    "Мм Нн Њњ Оо Пп Рр Сс Тт Ћћ ЎУуў Фф Хх Цц Чч Џџ Шш Щщ Ъъ Ыы Ьь Ээ Юю Яя ぁあァア ぃいィイ ぅうゔゥウヴ "
    "ぇえェエ ぉおォオ かがゕカガヵ きぎキギ くぐクグ けげゖケゲヶ こごコゴ さざサザ しじシジ すずスズ せぜセゼ "
    "そぞソゾ ただタダ ちぢチヂ っつづッツヅ てでテデ とどトド なナ にニ ぬヌ ねネ のノ はばぱハバパ ひびぴヒビピ "
    "ふぶぷフブプ へべぺヘベペ ほぼぽホボポ まマ みミ むム めメ もモ ゃやャヤ ゅゆュユ ょよョヨ らラ りリ るル "
    "れレ ろロ ゎわヮワヷ ゐヰヸ ゑヱヹ をヲヺ んン "
)
_PLAIN_BASES = (
    "UNICODE ca de de_AUT dz en en_USA ff ff_Adlm fr fr_CAN ga id id_IDN it lb lij ln ms nl pt sa st sw wae xh zu"
)

#: Characters that a base tailors, or contracts with a following ASCII character → bases. `th` ignores punctuation.
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

#: Characters compared at once, as one number, and the number of rounds before the remaining strings are returned.
_WIDTH, _LOOKS = 8, 64

#: Fewer strings than this are not worth another round.
_FEW = 16


def narrowed(strings: pa.Array, name: str, version: str) -> pa.Array:
    """Returns the distinct strings (none is null) that may be the smallest or the greatest by a collation (its SQL
    name, in a version).
    """
    if not len(strings):
        return strings
    if by_bytes(name):
        keys = _bytes(strings, name, version)
        if keys is None:
            return pc.unique(strings)
        found = pc.min_max(keys)
        return strings.take(arrow_array([pc.index(keys, found[side]).as_py() for side in ("min", "max")]))
    if version != ICU:
        return pc.unique(strings)
    left = pc.unique(strings.take(arrow_array(_Known.of(_trimmed(strings, name), name).ends())))
    if len(left) <= _FEW or base_of(name) not in plain_bases():
        return left
    # If many remain, they begin beyond ASCII: compare their letters too, which takes longer.
    return left.take(arrow_array(np.unique(_Letters.of(_trimmed(left, name), name).ends())))


class Signs:
    """Compares strings (nulls among them) with constants, as far as the order is certain."""

    def __init__(self, strings: pa.Array, name: str, version: str) -> None:
        self._name, self._version, self._count = name, version, len(strings)
        self._keys = self._known = None
        if by_bytes(name):
            self._keys = _bytes(strings, name, version)
        elif version == ICU:
            self._null = to_numpy(strings.is_null())
            self._strings = _trimmed(strings.fill_null(""), name)
            self._known = _Known.of(self._strings, name)

    def to(self, constant: str) -> pa.Array:
        """Returns -1, 0 or 1 per string: less than, equal to or greater than the constant; null if uncertain."""
        one = arrow_array([constant], pa.string())
        if self._keys is not None:
            other = (_bytes(one, self._name, self._version) or one)[0]
            above = pc.greater(self._keys, other).cast(pa.int8())
            return pc.subtract(above, pc.less(self._keys, other).cast(pa.int8()))
        if self._known is None:
            return pa.nulls(self._count, pa.int8())
        one = _trimmed(one, self._name)
        signs = self._known.signs(_Known.of(one, self._name))
        open_ = np.flatnonzero((signs == 0) & ~self._null)
        if len(open_) and base_of(self._name) in plain_bases():
            left = _Letters.of(self._strings.take(arrow_array(open_)), self._name)
            signs[open_] = left.signs(_Letters.of(one, self._name))
        return arrow_array(signs, pa.int8(), mask=(signs == 0) | self._null)


def changed(base: str) -> str:
    """Returns the printable ASCII characters whose order is not certain in a base of ICU's collations."""
    return next((chars for chars, bases in _CHANGED.items() if base in bases.split()), "")


@cache
def _ranks(name: str) -> NDArray[np.uint8]:
    """Byte → its position in the order; 0 if not certain, as for all bytes beyond ASCII."""
    unsafe = changed(base_of(name))
    ranks = np.zeros(256, np.uint8)
    for place, char in enumerate(_ORDER, start=1):
        for spelled in {char, char.upper()}:
            ranks[ord(spelled)] = 0 if spelled in unsafe else place
    return ranks


@cache
def _letters() -> NDArray[np.uint16]:
    """Code point → its position in the order of a plain base; 0 if not certain."""
    ranks = np.zeros(0x110000, np.uint16)
    for place, chars in enumerate(groups(), start=1):
        for char in chars:
            ranks[ord(char)] = place
    return ranks


def groups() -> list[str]:
    """Returns the characters of a plain base in groups of one primary weight."""
    return [*_ORDER[: _ORDER.index("a")], *_LETTERS.split()]


def plain_bases() -> list[str]:
    """Returns the bases that neither tailor nor move any of `groups`."""
    return _PLAIN_BASES.split()


def _trimmed(strings: pa.Array, name: str) -> pa.Array:
    return pc.utf8_rtrim(strings, " ") if name.upper().endswith("_RTRIM") else strings


def _bytes(strings: pa.Array, name: str, version: str) -> pa.Array | None:
    """Returns strings whose bytes compare as a byte-comparing collation requires; None in unknown ICU versions."""
    keys = _trimmed(strings, name)
    if not name.upper().startswith("UTF8_LCASE"):
        return keys
    return lcase.folded(keys) if version == lcase.ICU else None


@dataclass(frozen=True)
class _Known:
    """The certain prefixes of strings: their bytes, where each starts and ends, and the ranks of the order."""

    raw: NDArray[Any]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    ranks: NDArray[np.uint8]

    #: The number of positions compared at once.
    width: ClassVar[int] = _WIDTH

    @classmethod
    def of(cls, strings: pa.Array, name: str) -> Self:
        """Builds it from strings without nulls."""
        plain = strings if strings.offset == 0 else pa.concat_arrays([strings, strings.slice(0, 0)])
        _, offsets_buffer, data = plain.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32)[: len(plain) + 1].astype(np.int64)
        # One byte more than a window after the last string, so that every window can be read.
        raw = np.zeros(offsets[-1] + _WIDTH + 1, np.uint8)
        if data is not None:
            raw[: offsets[-1]] = np.frombuffer(data, np.uint8, offsets[-1])
        return cls(raw, offsets[:-1], offsets[1:], _ranks(name))

    def look(self, rows: NDArray[np.int64], done: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Returns the next eight positions of strings after `done` ones, as a number that compares like them, and masks
        of the certain ones.
        """
        at = np.minimum(self.starts[rows] + done, self.stops[rows])
        left = self.stops[rows] - at
        windows = np.ndarray((len(self.raw) - _WIDTH + 1,), np.uint64, self.raw, strides=(1,))
        texts = windows[at].view(np.uint8).reshape(-1, _WIDTH)
        places = self.ranks[texts]
        certain = np.minimum(left, _WIDTH)
        # The first uncertain position, and whether it also makes the previous one uncertain.
        whole = places.view(np.uint64).reshape(-1)
        odd = np.flatnonzero((whole - _ONES) & ~whole & _TOPS)
        first = np.argmax(places[odd] == 0, axis=1)
        inside = first < certain[odd]
        odd, first = odd[inside], first[inside]
        certain[odd] = np.maximum(first - _JOINS[texts[odd, first]], 0)
        behind = self.raw[at + _WIDTH]
        joined = (certain == _WIDTH) & (left > _WIDTH) & (self.ranks[behind] == 0) & _JOINS[behind].astype(np.bool_)
        known = _MASKS[certain - joined]
        return places.view(">u8").reshape(-1).astype(np.uint64) & known, known

    def ends(self) -> NDArray[np.int64]:
        """Returns the numbers of the strings that may be the smallest or the greatest; some come twice."""
        rows = np.arange(len(self.starts))
        first = self.look(rows, 0)
        return np.concatenate([part for least in (True, False) for part in self._sieved(rows, *first, least=least)])

    def _sieved(
        self, rows: NDArray[np.int64], keys: NDArray[np.uint64], known: NDArray[np.uint64], *, least: bool
    ) -> Iterator[NDArray[np.int64]]:
        """Returns the rows that may be the smallest, or the greatest; `keys` and `known` are their first positions."""
        for done in range(self.width, self.width * _LOOKS, self.width):
            # The best string, whatever its uncertain positions hold, excludes those that certainly compare worse.
            best = int(np.argmin(keys | ~known) if least else np.argmax(keys))
            both = known & known[best]
            ours, other = keys & both, keys[best] & both
            left = np.flatnonzero(ours <= other if least else ours >= other)
            whole = left[known[left] == _MASKS[_WIDTH]]
            if len(whole) < len(left):
                yield rows[left[known[left] != _MASKS[_WIDTH]]]
            if len(whole):
                ends = keys[whole]
                whole = whole[ends == (ends.min() if least else ends.max())]
            # All remaining strings have the same first `done` positions, all of them certain.
            rows = rows[whole]
            if len(rows) <= _FEW:
                break
            keys, known = self.look(rows, done)
        yield rows

    def signs(self, constant: _Known) -> NDArray[np.int8]:
        """Returns -1 or 1 where a string's order relative to the constant is certain, else 0."""
        found = np.zeros(len(self.starts), np.int8)
        rows = np.arange(len(self.starts))
        for done in range(0, self.width * _LOOKS, self.width):
            keys, known = self.look(rows, done)
            (other,), (theirs,) = constant.look(np.array([0]), done)
            both = known & theirs
            found[rows[(keys & both) < (other & both)]] = -1
            found[rows[(keys & both) > (other & both)]] = 1
            rows = rows[(found[rows] == 0) & (both == _MASKS[_WIDTH])]
            if not len(rows):
                break
        return found


class _Letters(_Known):
    """The same by code points and letters, of a plain base: `raw` holds positions in the order, two bytes each."""

    width: ClassVar[int] = _WIDTH // 2

    @classmethod
    def of(cls, strings: pa.Array, name: str) -> Self:
        """Builds it from strings without nulls."""
        known = _Known.of(strings, name)
        text = known.raw[: -_WIDTH - 1]
        before = np.concatenate(([0], np.cumsum((text & 0xC0) != 0x80)))
        points = np.frombuffer(text.tobytes().decode("utf-8").encode("utf-32-le"), np.uint32)
        places = np.zeros(len(points) + cls.width + 1, ">u2")
        places[: len(points)] = _letters()[points]
        return cls(places, before[known.starts], before[known.stops], known.ranks)

    def look(self, rows: NDArray[np.int64], done: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """As `_Known.look`. A character outside the order always makes the letter before it uncertain."""
        at = np.minimum(self.starts[rows] + done, self.stops[rows])
        left = self.stops[rows] - at
        certain = np.minimum(left, self.width)
        for behind in range(self.width, -1, -1):
            odd = (self.raw[at + behind] == 0) & (behind < left)
            certain[odd] = max(behind - 1, 0)
        windows = np.ndarray((len(self.raw) - self.width + 1,), ">u8", self.raw, strides=(2,))
        known = _MASKS[2 * certain]
        return windows[at].astype(np.uint64) & known, known


#: Whether a byte may belong to a character that contracts with the previous one.
_JOINS = np.array([not 0x20 <= byte < 0x7F for byte in range(256)], np.int64)

#: A number has a byte of zero where, less ones, it has a bit at the top of one that it had not.
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)

#: The number of certain positions → a mask of them.
_MASKS = np.array([((1 << 8 * n) - 1) << 8 * (_WIDTH - n) for n in range(_WIDTH + 1)], np.uint64)
