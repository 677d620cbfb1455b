"""Translates the library's messages and hints for the command line.

The rule: a hint names what the user can do. The library names arguments and methods; on the command line these are
options, or do not exist, and then the hint does not name them. A test checks that no hint of a verb contains Python,
and that each option exists.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Sequence
from shlex import quote


def _option(argument: str) -> str:
    return f"--{argument.replace('_', '-')}"


def _word(found: re.Match[str]) -> str:
    """A path that Python shows, as a word of a shell."""
    return quote(literal_eval(found[1]))


#: A text as Python shows it.
_TEXT = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
#: Arguments whose option has the same name.
_SAME = (
    *("interval", "limit", "max_size", "mode", "quarantine", "retention", "shredding", "since", "target_file_size"),
    *("timestamp", "to", "txn", "version", "where", "zorder_by"),
)

#: Patterns in hints and messages, and their replacements.
SAYS: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"set_properties\(\{\"(.+?)\": \"(\w+)\"\}\)", r"mica alter TABLE --set \1=\2"),
        (r"storage_options=\{'(\w+)': '(\w+)'\}", r"--storage-option \1=\2"),
        (r"Give (them|credentials) in storage_options", r"Give \1 by --storage-option"),
        (r"Check storage_options", r"Check --storage-option"),
        (r"leave (\w+) out of storage_options", r"leave --storage-option \1 out"),
        (r"The storage_options deny it", r"--storage-option denies it"),
        (r"\bof storage_options is\b", r"of --storage-option is"),
        (r"with these storage_options", r"with these values of --storage-option"),
        (r"\bstorage_options has\b", r"--storage-option has"),
        (r"columns=\{'(.+?)': …\}", r"--add '\1=…'"),
        (r"give schema_evolution=True \(INSERT WITH SCHEMA EVOLUTION in SQL\)", r"give --schema-evolution"),
        (r"Drop them first: drop_constraint", r"Drop them first: --drop-constraint"),
        (r"alter_column sets a default", r"--default sets a default"),
        (r"Table\.set_collation sets", r"--collation sets"),
        (r"`Table\.fsck` leaves", r"`mica fsck` leaves"),
        (r"without truncate_history", r"without --truncate-history"),
        (r"use mode= to replace it or to keep it", r"use --mode overwrite or --mode ignore"),
        (r"Run the query on Spark: Scan\.to_df\(\) without it, and.*", r"Run the query on Spark: mica sql."),
        (r"leave idempotent=True out", r"leave --idempotent out"),
        (r"ingest without idempotent=True", r"ingest without --idempotent"),
        (r"^idempotent must be False for (.*), got True$", r"--idempotent cannot be used with \1"),
        (
            r"^idempotent must be False with mode='overwrite'(.*), got True$",
            r"leave --idempotent out with --mode overwrite\1",
        ),
        (r"on_error='quarantine'", r"--on-error quarantine"),
        (r"invalid_utf8='replace'", r"--invalid-utf8 replace"),
        (r"duplicate_keys='last'", r"--last-key-wins"),
        (r"mode='(ignore|append)'(?! or)", r"--mode \1"),
        (r"mode='append' or 'overwrite'", r"--mode append or --mode overwrite"),
        (r"\band partition_by names\b", r"and --partition-by names"),
        (r"Leave partition_by out", r"Leave --partition-by out"),
        (r"Change them with Table\.set_properties\.", r"Leave --property out: an existing table keeps its own."),
        (r"Use Table\.add_constraint and Table\.drop_constraint\.", r"Leave that --property out."),
        (r"(?:raise|Raise) max_size\b", r"Raise --max-size"),
        (
            rf"^({'|'.join(_SAME)}) (is|must)\b",
            lambda m: f"{_option(m[1])} {m[2]}",
        ),
        (r"Use scan\.to_df\(spark\), or compare bytes", r"Compare bytes"),
        (r"Append the rows to the table \(mica\.Table\.open\(…\)\.append\), or write elsewhere\.", r"Write elsewhere."),
        (
            rf"Read the table: mica\.Table\.open\({_TEXT}\)\.scan\(\)\.",
            lambda m: f"Name the table itself: {literal_eval(m[1])}.",
        ),
        (rf"mica\.read_parquet\({_TEXT}\) reads", lambda m: f"mica scan {_word(m)} reads"),
        (r"^Name another version with since\.", r"Name another version with --since."),
        (rf"mica\.ingest_json\({_TEXT}, TABLE\)", lambda m: f"mica ingest {_word(m)} TABLE"),
        (
            r"a number of hours, a text such as '7 days', or a timedelta",
            r"a number of hours, or a text such as '7 days'",
        ),
        (r"(say|or|pass) enforce_retention=False", r"\1 --no-enforce-retention"),
        (r"^Use mica\.Table, or another folder", r"Name the table itself, or another folder"),
        (
            r"^Look at the master and at the settings, or work in process.*",
            r"Look at --master and --conf; --debug shows Spark's log.",
        ),
        (r"leave `spark=` out", r"leave --spark out"),
        (
            r"mica\.read_parquet reads the rows and Table\.convert_to_delta makes a table\.",
            r"mica scan 'FOLDER/**/*.parquet' reads the rows and mica convert-to-delta FOLDER makes a table.",
        ),
        (r"mica\.convert_files writes the rows", r"mica convert FOLDER TABLE writes the rows"),
        (r"Call mica\.enable\(spark\) before, in a classic session; or use", r"Use"),
        (r"give it a name with mica\.register\.", r"give it a name with --table NAME=PATH."),
    )
)


def spoken(text: str) -> str:
    """The text in the words of the command line."""
    for pattern, instead in SAYS:
        text = pattern.sub(instead, text)
    return text
