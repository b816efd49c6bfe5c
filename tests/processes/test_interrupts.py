"""`placewire replay` interrupted while Spark starts."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from waits import WAIT_S, until


def processes_of(session: int) -> list[str]:
    """The processes of a session, by what the system says of each."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may end while we look
            state, _, _, of, *_ = path.read_text().rpartition(")")[2].split()
            if int(of) == session and state != "Z":
                found.append(path.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("delay_s", [0.1, 1.2])
def test_an_interrupt_while_spark_starts_leaves_nothing_behind(
    delay_s: float, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"type":"object","id":"o","ts":"2026-03-01T12:00:00Z","lon":0,"lat":0,"text":"a"}\n'
    )
    words = ["replay", str(log), "--results", str(tmp_path / "results.jsonl")]
    run = subprocess.Popen(
        [sys.executable, "-m", "placewire.cli.main", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert run.stderr is not None
    while not (line := run.stderr.readline()).startswith("Spark runs on"):
        assert line, "it ended early"
    time.sleep(delay_s)  # the moment of the interrupt
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(WAIT_S) == 130
    assert run.stderr.read() == "placewire: interrupted\n"
    until(lambda: not processes_of(run.pid), "every process has ended")
