"""What the library advises, in the words of the command line.

The rule: a hint names what its reader can do. The library speaks of arguments and methods; on the command line these
are options, or are not there at all, and then the hint does not name them. One table; a test holds that no Python is
left of any hint that a verb can meet, and that each option exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence


def _option(argument: str) -> str:
    return f"--{argument.replace('_', '-')}"


#: Texts of hints and messages, and what is said instead.
SAYS: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"storage_options=\{'(\w+)': '(\w+)'\}", r"--storage-option \1=\2"),
        (r"Give (them|credentials) in storage_options", r"Give \1 by --storage-option"),
        (r"Check storage_options", r"Check --storage-option"),
        (r"\bstorage_options has\b", r"--storage-option has"),
        (r"columns=\{'(.+?)': …\}", r"--add '\1=…'"),
        (r"leave idempotent=True out", r"leave --idempotent out"),
        (r"^idempotent is True, which it cannot be", r"--idempotent is not for this"),
        (r"Give False with mode='overwrite'", r"Leave it out with --mode overwrite"),
        (r"on_error='quarantine'", r"--on-error quarantine"),
        (r"invalid_utf8='replace'", r"--invalid-utf8 replace"),
        (r"duplicate_keys='last'", r"--last-key-wins"),
        (r"mode='append' or 'overwrite'", r"--mode append or --mode overwrite"),
        (r"Leave partition_by out", r"Leave --partition-by out"),
        (r"Change them with Table\.set_properties\.", r"Leave --property out: a table that exists keeps its own."),
        (r"(?:raise|Raise) max_size\b", r"Raise --max-size"),
        (r"^(max_size|target_file_size|limit|where|shredding|quarantine) is", lambda m: f"{_option(m[1])} is"),
        (r"Use scan\.to_df\(spark\), or compare bytes", r"Compare bytes"),
        (r"Append the rows to the table \(mica\.Table\.open\(…\)\.append\), or write elsewhere\.", r"Write elsewhere."),
        (r"Read the table: mica\.Table\.open\('(.*?)'\)\.scan\(\)\.", r"Name the table itself: \1."),
        (r"say enforce_retention=False", r"say --no-enforce-retention"),
        (r"leave `spark=` out", r"leave --spark out"),
    )
)


def spoken(text: str) -> str:
    """The text as the command line says it."""
    for pattern, instead in SAYS:
        text = pattern.sub(instead, text)
    return text
