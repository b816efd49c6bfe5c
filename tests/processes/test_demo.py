"""The demo: one command starts everything, says where it is, and ends by itself."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

import httpx

from waits import WAIT_S

COMMAND = [sys.executable, "-m", "placewire.cli.main", "demo", "--runner", "local"]


def test_it_plays_and_ends_by_itself() -> None:
    given = ["--rate", "100", "--subscriptions", "200", "--for", "6"]
    with subprocess.Popen(
        [*COMMAND, *given],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        told = ""
        for line in process.stdout:
            told += line
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                break
        assert found, told
        # The page is there as soon as its address is.
        assert "<title>Placewire" in httpx.get(found[0], timeout=WAIT_S).text
        told += process.stdout.read()
        assert process.wait(60) == 0, told
    last = told.strip().splitlines()[-1]
    counts = re.match(r"([\d,]+) events, ([\d,]+) results", last)
    assert counts, told
    events, results = (int(count.replace(",", "")) for count in counts.groups())
    assert events > 200 + 100, told
    assert results > 5, told
    rates = [int(rate.replace(",", "")) for rate in re.findall(r", ([\d,]+) objects/s", told)]
    assert rates
    assert all(50 <= rate <= 130 for rate in rates), told  # texts alone, from the first line on
    assert "Traceback" not in told


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*COMMAND, "--port", port, "--for", "5"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 2
    assert f"port {port} of 127.0.0.1: cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
