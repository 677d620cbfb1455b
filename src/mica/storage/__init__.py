"""Bytes by name: the one door to disks and object stores.

The rule: nothing else in mica opens a table's files in Python, and no secret that comes in here ever goes out again in
a text. Object stores are reached through obstore. Local disks are reached directly, because obstore's local store
neither syncs what it wrote nor takes every legal file name (`name#1`, line breaks, empty segments); an atomic create
is a hard link there too, so both kinds of writer may meet in one table.

Names below a location are plain text with `/` between segments, never percent-encoded: `log.paths` decodes the URIs of
the log. As in Spark, a `file:` URI is not decoded either.
"""

from __future__ import annotations

from mica.storage.base import SCHEMES, AlreadyExistsError, Entry, Storage, Writer, split_scheme

__all__ = ["SCHEMES", "AlreadyExistsError", "Entry", "Storage", "Writer", "split_scheme"]
