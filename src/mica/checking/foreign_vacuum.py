"""Files in use that a VACUUM of delta-spark deletes, and vectors that it fails on, as mica wrote them once.

The rule: names that encode letters beyond ASCII, and deletion vectors inside of the log, are noted; neither violates
the protocol. delta-spark 4.4 compares names without decoding those letters (`log/paths.py`), and its VACUUM ends in an
error at such a vector (`log/deletion_vectors.py`).
"""

from __future__ import annotations

from mica import compute as pc
from mica.log.paths import decode_path
from mica.log.snapshot import Snapshot
from mica.wording import counted

#: A byte beyond ASCII, encoded.
_ENCODED = "%[89A-Fa-f][0-9A-Fa-f]"
_WAY_OUT = "Write such files again (t.overwrite(t.scan(where=…), where=…)), or leave VACUUM to mica"


def not_for_a_foreign_vacuum(snapshot: Snapshot) -> list[str]:
    """Returns a note for either."""
    paths, vectors = snapshot.files.column("path"), snapshot.files.column("deletion_vector")
    notes = []
    encoded = paths.filter(pc.match_substring_regex(paths, pattern=_ENCODED))
    if len(encoded):
        shown = decode_path(encoded[0].as_py())
        notes.append(
            f"the log encodes letters beyond ASCII in names, of {counted(len(encoded), 'file')}, one is {shown}: a "
            f"VACUUM of delta-spark deletes them although they are in use. {_WAY_OUT}"
        )
    inline = pc.sum(pc.equal(pc.struct_field(vectors, [0]), "i")).as_py()
    if inline:
        notes.append(
            f"the log holds deletion vectors itself, of {counted(inline, 'file')}: a VACUUM of delta-spark fails on "
            f"them. {_WAY_OUT}"
        )
    return notes
