"""`placewire serve` in child processes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from placewire.serve import processes
from ports import free_port
from waits import WAIT_S


def test_a_part_that_is_unusable_ends_the_others_at_once() -> None:
    unusable = processes.Child("gateway", [sys.executable, "-c", "raise SystemExit(2)"])
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    other = processes.Child("pipeline", [sys.executable, "-c", deaf])
    begun = time.monotonic()
    assert processes.supervise([unusable, other], threading.Event(), print) == 2
    assert time.monotonic() - begun < processes.STOP_TIMEOUT_S / 2
    assert other.process is not None
    assert other.process.poll() is not None


def test_serve_says_when_it_is_ready_and_ends_when_told(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "placewire.cli.main", "serve", "--state",
               str(tmp_path / "state"), "--port", str(port), "--runner", "local", "--json",
               "--part", "gateway"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["url"] == f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_S)
    assert process.returncode == 0


@pytest.mark.parametrize("part", ["all", "gateway"])
def test_seconds_count_from_when_it_is_ready(part: str, tmp_path: Path) -> None:
    def serve(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "placewire.cli.main", "serve", "--part", part]
        command += ["--state", str(tmp_path / "state"), "--port", str(free_port())]
        command += ["--runner", "local", "--for", "0.1", *more]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    failed = serve("--ledger", f"postgresql://127.0.0.1:{free_port()}/nothing")
    assert failed.returncode == 2
    assert "ledger: PostgreSQL" in failed.stderr
    done = serve()
    assert (done.returncode, "Listening on" in done.stderr) == (0, True), done.stderr
