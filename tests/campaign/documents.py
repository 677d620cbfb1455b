"""Random documents: depth, types, drift, awkward keys. The same for one seed.

The rule: only what every engine can be asked about is in them, JSON; which is right is then the document itself.
"""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

KEYS = [
    "id",
    "kind",
    "a.b",
    "it's",
    'q"',
    "é",
    "value",
    "typed_value",
    "metadata",
    "_x",
    "list",
    "K",
    "k",
    "￰",
    "\U00010000",
]
#: JSON numbers, each spelled as it stands.
NUMBERS = ["0", "-1", "127", "128", "-32769", "2147483648", "9223372036854775807", "1.5", "-0.25", "100.00", "0.1"]
NUMBERS += ["1.7976931348623157E308", "2.5E-10"]
#: What some engines do not take at all stands in one batch of four, or they would be asked nothing else.
RARE_KEYS = [""]
RARE_NUMBERS = ["12345678901234567890", "99999999999999999999999999999999999999"]


class Number(str):
    """A number by its text, so that no digit is lost on the way."""

    __slots__ = ()


class _Random(random.Random):
    """Random numbers, and what this batch draws from."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rare = self.random() < 0.25
        self.keys = KEYS + RARE_KEYS * rare
        self.numbers = NUMBERS + RARE_NUMBERS * rare


def documents(seed: int, count: int) -> list[str]:
    """So many JSON texts: a shape of their own per batch, from which some rows drift."""
    rng = _Random(seed)
    shape = {rng.choice(rng.keys) + rng.choice(["", "1", "2"]): rng.randrange(8) for _ in range(rng.randint(2, 12))}
    wide = {f"{rng.choice('zyx')}{n:02}": 2 for n in range(40)} if rng.random() < 0.3 else {}
    return [_text(_row(rng, {**shape, **wide})) for _ in range(count)]


def _row(rng: _Random, shape: dict[str, int]) -> Any:
    if rng.random() < 0.04:
        return _value(rng, 0)
    row: dict[str, Any] = {}
    for key, kind in shape.items():
        if rng.random() < 0.85:
            # One in twenty is of another type than its column: drift.
            row[key] = _of_kind(rng, kind) if rng.random() < 0.95 else _value(rng, 1)
    if rng.random() < 0.2:
        row[f"rare{rng.randrange(50)}"] = _value(rng, 1)
    keys = list(row)
    rng.shuffle(keys)
    return {key: row[key] for key in keys}


def _of_kind(rng: _Random, kind: int) -> Any:
    match kind:
        case 0:
            return f"t{rng.randrange(1000)}" + "ü" * rng.randrange(3) * 40
        case 1:
            return rng.random() < 0.5
        case 2:
            return Number(rng.randrange(-1000, 100_000))
        case 3:
            return Number(Decimal(rng.randrange(10**6)).scaleb(-2))
        case 4:
            return [Number(rng.randrange(9)) for _ in range(rng.randrange(4))]
        case 5:
            return {"x": Number(rng.randrange(9)), "y": {"z": f"s{rng.randrange(9)}"}}
        case 6:
            return [{"n": Number(n), "s": "v"} for n in range(rng.randrange(3))]
    return Number(rng.choice(rng.numbers))


def _value(rng: _Random, depth: int) -> Any:
    kind = rng.randrange(9 if depth < 6 else 6)
    match kind:
        case 0:
            return None
        case 1:
            return rng.random() < 0.5
        case 2 | 3:
            return Number(rng.choice(rng.numbers))
        case 4 | 5:
            return rng.choice(["", "a", "ß\U0001f600", '"\\/\b\n\t\u0001', "x" * 70, "2024-01-01", "12"])
        case 6 | 7:
            return {rng.choice(rng.keys): _value(rng, depth + 1) for _ in range(rng.randrange(5))}
    return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]


def _text(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value)


def canonical(text: str | None) -> Any:
    """A text as a value to be compared: objects without order, numbers by their value, doubles as doubles."""
    return None if text is None else _canonical(json.loads(text, parse_float=Decimal, parse_int=Decimal))


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, Decimal):
        # parse_json makes doubles beyond 38 digits and where there is an exponent.
        digits = value.as_tuple()
        exact = len(digits.digits) <= 38 and -38 <= int(digits.exponent) <= 0
        return value.normalize() if exact else float(value)
    return value


def differs(expected: Any, found: Any) -> str | None:
    """How two canonical values differ; None where they are equal. A number that is equal only as a double is told
    apart: an engine that makes doubles of decimals loses digits, and no other value.
    """
    if expected == found and type(expected) is type(found):
        return None
    if isinstance(expected, Decimal | float) and isinstance(found, Decimal | float):
        if expected == found or float(expected) == float(found):
            return None if expected == found else "digits"
        return "value"
    if isinstance(expected, dict) and isinstance(found, dict):
        if expected.keys() != found.keys():
            return "keys"
        return _worst(differs(expected[key], found[key]) for key in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return "length" if len(expected) != len(found) else _worst(map(differs, expected, found))
    return "null" if found is None else "value"


def _worst(kinds: Any) -> str | None:
    order = [None, "digits", "null", "value", "length", "keys"]
    return max(kinds, key=order.index, default=None)
