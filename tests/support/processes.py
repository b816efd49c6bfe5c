"""`placewire serve` in processes that tests kill, and a consumer that reconnects."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ports import free_port
from waits import until


class Processes:
    """`placewire serve` with its two children."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        self.said = root.parent / "said"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "placewire.cli.main", "serve", "--state", str(self.root)]
        with open(self.said, "ab") as said:
            self.supervisor = subprocess.Popen(
                [*command, "--runner", "local", "--port", str(self.port)], stdout=said, stderr=said
            )

    def child(self, part: str) -> int | None:
        """Return the process id of a part, or None if it does not run."""
        pid = self.supervisor.pid
        for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if part.encode() in command_of(int(one)):
                return int(one)
        return None

    def kill(self, part: str) -> None:
        """Kill a part (SIGKILL) and wait until the supervisor has restarted it."""
        victim = until(lambda: self.child(part), f"there is a {part}")
        os.kill(victim, signal.SIGKILL)
        until(lambda: self.child(part) not in (None, victim), f"there is another {part}")

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Send one request on a new connection; raise OSError if there is no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            text = body if isinstance(body, str | None) else json.dumps(body)
            connection.request(method, path, text, sent)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        except http.client.HTTPException as error:
            raise OSError(str(error)) from None
        finally:
            connection.close()

    def insist(self, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
        """Retry a request until it succeeds."""

        def tried() -> dict[str, Any] | None:
            try:
                status, reply = self.ask(method, path, body, **headers)
            except OSError:
                return None
            assert status < 300 or status == 503, reply
            return reply if status < 300 else None

        return dict(until(tried, f"{method} {path} is answered"))

    def caught_up(self) -> dict[str, Any]:
        def holds() -> dict[str, Any] | None:
            health = self.insist("GET", "/health")
            return health if health["lag_events"] == 0 else None

        return dict(until(holds, "everything is committed"))

    def end(self) -> None:
        if self.supervisor.poll() is None:
            self.supervisor.kill()
        self.supervisor.wait()


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_running(pid: int | str) -> bool:
    """Tell whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Consumer(threading.Thread):
    """Read a stream of events and resume after the last one whenever it breaks."""

    def __init__(self, service: Processes, path: str) -> None:
        super().__init__(daemon=True)
        self.service = service
        self.path = path
        self.last = ""
        self.got: list[dict[str, Any]] = []
        self.joined = 0
        self.done = False

    def run(self) -> None:
        while not self.done:
            connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=5)
            try:
                self._read(connection)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
            finally:
                connection.close()

    def _read(self, connection: http.client.HTTPConnection) -> None:
        connection.request("GET", self.path, headers={"Last-Event-ID": self.last})
        reply = connection.getresponse()
        if reply.status != 200:
            return
        self.joined += 1
        event: dict[str, str] = {}
        while not self.done and (line := reply.readline()):
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                event[name] = value
                continue
            if "data" in event:
                self.got.append(json.loads(event["data"]))
                self.last = event["id"]
            event = {}
