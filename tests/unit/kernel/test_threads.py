"""The kernel in threads that come and go."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_READ = """
import sys, threading
import mica

def read():
    assert mica.read_parquet(sys.argv[1]).to_arrow().num_rows == 3

for _ in range(20):
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
print("read", "mica._native" in sys.modules)
"""


def test_the_thread_that_loads_the_kernel_may_end_before_others_begin(tmp_path: Path) -> None:
    """A later thread gets the address of that one."""
    file = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3]}), file)
    found = subprocess.run([sys.executable, "-c", _READ, file], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "read True\n"), found.stderr
