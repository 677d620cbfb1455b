"""Access to files on disks and in object stores.

The rule: only this package opens a table's files in Python, and no secret given to it ever appears in
a text. obstore accesses object stores. Local disks are accessed directly, because obstore's local store
neither syncs what it wrote nor accepts every legal file name (`name#1`, line breaks, empty segments). Both use
a hard link as the atomic create, so both kinds of writer may share a table.

Names below a location are plain text with `/` between segments, never percent-encoded: `log.paths` decodes the URIs of
the log. As in Spark, a `file:` URI is not decoded either.
"""

from __future__ import annotations

from mica.storage.base import SCHEMES, AlreadyExistsError, Entry, Storage, Writer, split_scheme

__all__ = ["SCHEMES", "AlreadyExistsError", "Entry", "Storage", "Writer", "split_scheme"]
