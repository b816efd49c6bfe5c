"""`placewire run` in a child process, stopped by signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logs import BUILT_KINDS
from oracle import replay
from processes import is_running
from run_config import EVENTS, SINKS, lines_of, write_config
from streams import split_log
from waits import until


def test_a_run_ends_when_it_is_told_to_and_goes_on(tmp_path: Path) -> None:
    """SIGTERM to it or to all its processes, SIGKILL anywhere; the last run finishes."""
    cut = split_log(tmp_path, 12, objects=2_000, subscriptions=200, queries=12, seed=5)
    config = write_config(tmp_path, EVENTS + SINKS)
    command = [sys.executable, "-m", "placewire.cli.main", "run", "--config", str(config)]
    kills = [
        (os.kill, signal.SIGTERM, 2),
        (os.killpg, signal.SIGTERM, 4),
        (os.kill, signal.SIGKILL, 6),
    ]
    for kill, number, much in kills:
        with subprocess.Popen(
            [*command, "--log", "json"], stderr=subprocess.PIPE, start_new_session=True
        ) as process:

            def delivered(process: subprocess.Popen[bytes] = process, much: int = much) -> bool:
                assert process.poll() is None, process.stderr and process.stderr.read()
                return len(list((tmp_path / "lines").glob("*.jsonl"))) >= much

            until(delivered, f"{much} files are written", 300)
            kill(process.pid, number)
            told = process.stderr.read().decode() if process.stderr else ""
            process.wait(120)
        assert process.returncode == (0 if number == signal.SIGTERM else -signal.SIGKILL), told
        assert "Traceback" not in told
        said = [json.loads(line)["what"] for line in told.splitlines() if line.startswith("{")]
        assert set(said) <= {"starting", "started", "batch", "lag", "ended"}
        assert said.count("ended") == (number == signal.SIGTERM)
        assert number == signal.SIGKILL or said[-1] == "ended"
    ended = subprocess.run(
        [*command, "--once"], capture_output=True, text=True, check=False, timeout=400
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    expected = replay(b"".join(cut), kinds=BUILT_KINDS, with_data=True)
    assert lines_of(tmp_path / "lines") == expected.results


@pytest.mark.parametrize("kill", [os.kill, os.killpg])
def test_a_run_that_is_told_to_end_while_it_starts(
    tmp_path: Path, kill: Callable[[int, int], None]
) -> None:
    (tmp_path / "source").mkdir()
    config = write_config(tmp_path, EVENTS + SINKS)
    command = [sys.executable, "-m", "placewire.cli.main", "run", "--config", str(config)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        java = until(lambda: process.poll() is None and children.read_text(), "Spark starts")
        kill(process.pid, signal.SIGTERM)
        told = process.stderr.read() if process.stderr else ""
        process.wait(120)
    assert told.splitlines()[-1] == "stopped before it started"
    assert process.returncode == 0
    assert "Traceback" not in told
    until(lambda: not any(map(is_running, java.split())), "Spark has ended")
