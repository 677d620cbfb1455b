"""What is certain of the order of strings without Spark's comparator: a sieve before it.

The rule: what is told is what the comparator would say, and nothing is told otherwise. Of many strings those stay that
can be the least or the greatest; of a string and a constant the sign is told, or nothing. What is certain is little,
and enough: printable ASCII characters that a collation neither changes nor joins with a following one have one primary
weight each, in the order below for every one of ICU's collations; so have the letters below, in bases that change
nothing of them. Strings are compared by their primary weights first: of two that begin with such characters the first
place at which these differ decides.

    what ends the certain beginning of a string  | it ends
    ----------------------------------------------|------------------------------------------------------------------
    printable ASCII that the collation changes, or| before it: were it joined with the character before, that one
    joins with ASCII behind it                    | would be among those that are joined
    any other character                           | one earlier: it may join with one before it (`l·`, a combining
                                                  | mark), and no join begins two before it

Where the table has not been checked, in other versions of ICU, nothing is certain.

UTF8_LCASE and those that only trim compare bytes of changed strings: there everything is certain. Trailing blanks are
nothing to collations that trim.

Source: UTS #10, sections 4.4 and 9.1 (form and comparison of sort keys); CLDR 48 as ICU 78.3 has it. The tests ask
ICU4J for each collation's tailored characters and contractions, and Spark for the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mica.collation import lcase
from mica.collation.names import base_of
from mica.collation.trust import by_bytes

#: The version of ICU whose weights these are.
ICU = "78.3"

#: Printable ASCII by primary weight; letters have that of their capitals.
_ORDER = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"

#: Letters by primary weight, where a base neither changes nor joins nor moves any of them: groups of one weight, behind
#: blanks, signs and digits. What has more than one weight (`æ`) is not among them.
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
    if by_bytes(name):
        keys = _bytes(strings, name, version)
        if keys is None:
            return pc.unique(strings)
        found = pc.min_max(keys)
        return strings.take(pa.array([pc.index(keys, found[side]).as_py() for side in ("min", "max")]))
    if version != ICU:
        return pc.unique(strings)
    left = pc.unique(strings.take(pa.array(_Known.of(_trimmed(strings, name), name).ends())))
    if len(left) <= _FEW or base_of(name) not in plain_bases():
        return left
    # Many that are left begin beyond ASCII: their letters are looked at, which takes longer.
    return left.take(pa.array(np.unique(_Letters.of(_trimmed(left, name), name).ends())))


class Signs:
    """How strings (nulls among them) stand to constants, as far as it is certain."""

    def __init__(self, strings: pa.Array, name: str, version: str) -> None:
        self._name, self._version, self._count = name, version, len(strings)
        self._keys = self._known = None
        if by_bytes(name):
            self._keys = _bytes(strings, name, version)
        elif version == ICU:
            self._null = np.asarray(strings.is_null())
            self._strings = _trimmed(strings.fill_null(""), name)
            self._known = _Known.of(self._strings, name)

    def to(self, constant: str) -> pa.Array:
        """-1, 0 or 1 per string as it stands below, is equal to or stands above the constant; null: who knows."""
        one = pa.array([constant], pa.string())
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
            left = _Letters.of(self._strings.take(pa.array(open_)), self._name)
            signs[open_] = left.signs(_Letters.of(one, self._name))
        return pa.array(signs, pa.int8(), mask=(signs == 0) | self._null)


def changed(base: str) -> str:
    """The printable ASCII characters of which nothing is certain in a base of ICU's collations."""
    return next((chars for chars, bases in _CHANGED.items() if base in bases.split()), "")


@cache
def _ranks(name: str) -> NDArray[np.uint8]:
    """Byte → its place in the order; 0 where nothing is certain, as of all bytes beyond ASCII."""
    unsafe = changed(base_of(name))
    ranks = np.zeros(256, np.uint8)
    for place, char in enumerate(_ORDER, start=1):
        for spelled in {char, char.upper()}:
            ranks[ord(spelled)] = 0 if spelled in unsafe else place
    return ranks


@cache
def _letters() -> NDArray[np.uint16]:
    """Code point → its place in the order of a plain base; 0 where nothing is certain."""
    ranks = np.zeros(0x110000, np.uint16)
    for place, chars in enumerate(groups(), start=1):
        for char in chars:
            ranks[ord(char)] = place
    return ranks


def groups() -> list[str]:
    """Characters by primary weight in a plain base, each group of one."""
    return [*_ORDER[: _ORDER.index("a")], *_LETTERS.split()]


def plain_bases() -> list[str]:
    """The bases that neither change nor move any of `groups`."""
    return _PLAIN_BASES.split()


def _trimmed(strings: pa.Array, name: str) -> pa.Array:
    return pc.utf8_rtrim(strings, " ") if name.upper().endswith("_RTRIM") else strings


def _bytes(strings: pa.Array, name: str, version: str) -> pa.Array | None:
    """Strings whose bytes compare as a collation that compares bytes has it; None where its letters are not known."""
    keys = _trimmed(strings, name)
    if not name.upper().startswith("UTF8_LCASE"):
        return keys
    return lcase.folded(keys) if version == lcase.ICU else None


@dataclass(frozen=True)
class _Known:
    """The beginnings of strings that are certain: their bytes, from where to where each goes, and the order's ranks."""

    raw: NDArray[Any]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    ranks: NDArray[np.uint8]

    #: How many places are looked at at once.
    width: ClassVar[int] = _WIDTH

    @classmethod
    def of(cls, strings: pa.Array, name: str) -> Self:
        """Of strings none of which is null."""
        plain = strings if strings.offset == 0 else pa.concat_arrays([strings, strings.slice(0, 0)])
        _, offsets_buffer, data = plain.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32)[: len(plain) + 1].astype(np.int64)
        # One byte more than a window behind the last string, so that every window can be taken.
        raw = np.zeros(offsets[-1] + _WIDTH + 1, np.uint8)
        if data is not None:
            raw[: offsets[-1]] = np.frombuffer(data, np.uint8, offsets[-1])
        return cls(raw, offsets[:-1], offsets[1:], _ranks(name))

    def look(self, rows: NDArray[np.int64], done: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The next eight places of strings behind `done` ones, as a number that compares as they do, and masks of those
        that are certain.
        """
        at = np.minimum(self.starts[rows] + done, self.stops[rows])
        left = self.stops[rows] - at
        windows = np.ndarray((len(self.raw) - _WIDTH + 1,), np.uint64, self.raw, strides=(1,))
        texts = windows[at].view(np.uint8).reshape(-1, _WIDTH)
        places = self.ranks[texts]
        certain = np.minimum(left, _WIDTH)
        # The first that is not certain, and whether it takes the one before it along.
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
        """The numbers of the strings that may be the least or the greatest; some come twice."""
        rows = np.arange(len(self.starts))
        first = self.look(rows, 0)
        return np.concatenate([part for least in (True, False) for part in self._sieved(rows, *first, least=least)])

    def _sieved(
        self, rows: NDArray[np.int64], keys: NDArray[np.uint64], known: NDArray[np.uint64], *, least: bool
    ) -> Iterator[NDArray[np.int64]]:
        """Those of the rows that may be the least, or the greatest; `keys` and `known` are their first places."""
        for done in range(self.width, self.width * _LOOKS, self.width):
            # The best one, whatever stands where nothing is known of it, excludes those that differ for the worse.
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
            # All that are left have the same first `done` places, all of them certain.
            rows = rows[whole]
            if len(rows) <= _FEW:
                break
            keys, known = self.look(rows, done)
        yield rows

    def signs(self, constant: _Known) -> NDArray[np.int8]:
        """-1 or 1 where it is certain how each string stands to the constant, else 0."""
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
    """The same by code points and letters, of a plain base: `raw` holds places in the order, of two bytes each."""

    width: ClassVar[int] = _WIDTH // 2

    @classmethod
    def of(cls, strings: pa.Array, name: str) -> Self:
        """Of strings none of which is null."""
        known = _Known.of(strings, name)
        text = known.raw[: -_WIDTH - 1]
        before = np.concatenate(([0], np.cumsum((text & 0xC0) != 0x80)))
        points = np.frombuffer(text.tobytes().decode("utf-8").encode("utf-32-le"), np.uint32)
        places = np.zeros(len(points) + cls.width + 1, ">u2")
        places[: len(points)] = _letters()[points]
        return cls(places, before[known.starts], before[known.stops], known.ranks)

    def look(self, rows: NDArray[np.int64], done: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """As `_Known.look`. What is not in the order takes the letter before it along, whatever it is."""
        at = np.minimum(self.starts[rows] + done, self.stops[rows])
        left = self.stops[rows] - at
        certain = np.minimum(left, self.width)
        for behind in range(self.width, -1, -1):
            odd = (self.raw[at + behind] == 0) & (behind < left)
            certain[odd] = max(behind - 1, 0)
        windows = np.ndarray((len(self.raw) - self.width + 1,), ">u8", self.raw, strides=(2,))
        known = _MASKS[2 * certain]
        return windows[at].astype(np.uint64) & known, known


#: Whether a byte may be of a character that joins with the one before it.
_JOINS = np.array([not 0x20 <= byte < 0x7F for byte in range(256)], np.int64)

#: A number has a byte of zero where, less ones, it has a bit at the top of one that it had not.
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)

#: Places that are certain → a mask of them.
_MASKS = np.array([((1 << 8 * n) - 1) << 8 * (_WIDTH - n) for n in range(_WIDTH + 1)], np.uint64)
