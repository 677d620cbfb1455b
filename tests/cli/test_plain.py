"""No name and no value of a table reaches a terminal as a command to it."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import mica
from mica.cli.plain import plain

NASTY = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202e\b\r[red]:smile:"


def test_a_control_is_shown_as_a_sign_and_a_line_stays_a_line() -> None:
    assert plain("a\tb\nc é 漢 \u200d") == "a\tb\nc é 漢 \u200d"
    assert plain("\x1b[2J\r\x7f\x9b\u202e") == "␛[2J␍␡\ufffd\ufffd"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    (folder / "in.ndjson").write_text(json.dumps({NASTY: NASTY, "k": 1}) + "\n")
    columns = {NASTY: "v:k::string"}
    mica.ingest_json(
        folder / "in.ndjson", folder / "t", columns=columns, properties={"delta.columnMapping.mode": "name"}
    )
    return folder / "t"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "command", ["scan T", "scan T --where nope=1", "explain T --where v:k::bigint=1", "stats T", "suggest T", "drift T"]
)
def test_no_command_passes_them_on(table: Path, command: str, terminal: bool) -> None:
    arguments = [str(table) if word == "T" else word for word in shlex.split(command)]
    given = [sys.executable, "-m", "mica", *arguments]
    if terminal:
        text = on_a_terminal(given)
    else:
        done = subprocess.run(given, check=False, capture_output=True, timeout=60)
        text = (done.stdout + done.stderr).decode()
    assert text
    assert not [nasty for nasty in ("\x1b]", "\x1b[2J", "\x9b", "\x7f", "\u202e", "\b") if nasty in text]
    if command == "scan T":
        assert "␛]0;owned" in text.replace("\r\n", "")


def on_a_terminal(given: list[str]) -> str:
    """What a program writes to a terminal of its own."""
    ours, its = pty.openpty()
    with subprocess.Popen(given, stdin=its, stdout=its, stderr=its, env={**os.environ, "TERM": "xterm"}):
        os.close(its)
        text = b""
        while True:
            try:
                more = os.read(ours, 1 << 16)
            except OSError:  # the program has ended
                break
            if not more:
                break
            text += more
    os.close(ours)
    return text.decode()
