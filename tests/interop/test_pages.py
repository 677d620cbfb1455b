"""Pages as a browser shows them: whole on a phone, in the dark too, without a request."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import mica

MEASURE = f"<script>{Path(__file__).with_name('measure.js').read_text()}</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The explanation of a scan over twenty files, with long names and values."""
    if shutil.which("chromium") is None:
        pytest.skip("no Chromium (scripts/setup.sh --tests installs it on Debian as root)")
    folder = tmp_path_factory.mktemp("pages")
    table = mica.Table.create(folder / "a_table_with_a_rather_long_name_for_a_phone", "v VARIANT")
    for first in range(20):
        table.append([{"v": {"t": first * 10 + i, "a_long_name_of_a_field": "x" * 60 + str(i)}} for i in range(10)])
    where = "v:t::bigint BETWEEN 55 AND 95 AND v:a_long_name_of_a_field::string >= 'x'"
    report = table.scan(where=where).explain()
    (folder / "page.html").write_text(report.to_html().replace("</body>", MEASURE + "</body>"))
    return folder / "page.html"


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200], ids=["phone", "desk"])
def test_a_page_fits_and_can_be_read(page: Path, width: int, dark: bool) -> None:
    # Headless windows are 500 wide at least: a phone is a wider window that is shown enlarged.
    scale = max(1.0, 500 / width)
    command = [
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
        f"--user-data-dir={page.parent / 'user'}", "--virtual-time-budget=2000",
        f"--window-size={int(width * scale)},900", f"--force-device-scale-factor={scale}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    assert title, done.stderr[-2000:]
    found = json.loads(title[1].replace("&quot;", '"'))
    assert found["wide"] <= found["screen"]
    assert found["requests"] == 0
    assert found["dark"] is dark
    assert found["text"] >= 7
    assert found["soft"] >= 4.5
    assert found["read"] >= 3
    assert found["apart"] >= 1.5, "grey tells them apart too"
    assert found["shapes"] == found["drawn"] > 20
