"""`Table`: the public class to open, read and change a Delta table. Its methods delegate to other modules.

`opened` reads, `shaped` changes all but the rows, `rows` makes tables and changes rows.
"""

from mica.table.rows import Table as Table
from mica.write.commit import Commit as Commit

__all__ = ["Commit", "Table"]
