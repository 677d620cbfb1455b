"""Unknown answers replaced by the safe one.

The rule: most answers hold no null, and of these nothing is computed: a plan has dozens of them, each for few files,
row groups or pages.
"""

from __future__ import annotations

import pyarrow as pa

from mica import compute as pc
from mica.arrays import FALSE, TRUE
from mica.expressions.compare import Datum

_AS = {True: TRUE, False: FALSE}


def filled(answers: Datum, unknown: bool) -> Datum:
    """The answers, with `unknown` where they are null."""
    if isinstance(answers, pa.Scalar):
        return answers if answers.is_valid else _AS[unknown]
    return pc.fill_null(answers, _AS[unknown]) if answers.null_count else answers
