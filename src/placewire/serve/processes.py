"""Run the gateway, and supervise the gateway and pipeline processes.

Children exit with their supervisor, even if it is killed: they read its pipe until it closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

import uvicorn

from placewire.batch.coordinator import check_same
from placewire.ingest.sources import identify_journal
from placewire.model.errors import Unusable
from placewire.model.settings import complete_settings
from placewire.serve.gateway import GatewayOptions, open_gateway
from placewire.serve.http.app import make_app
from placewire.serve.http.connection import configure, raise_file_limit
from placewire.serve.ledger import LEDGER_FILE, check_ledger, is_ledger_of, is_postgres, open_ledger
from placewire.storage.journal import journal_folder
from placewire.storage.layout import StateDir
from placewire.storage.manifest import read_latest
from placewire.storage.runtime_files import find_server

BACKLOG = 4_096
PAUSES_S = (0.2, 1.0, 2.0, 5.0, 10.0)
STABLE_S = 30.0  # a child that ran this long restarts with the shortest pause
STOP_TIMEOUT_S = 30.0
UNUSABLE = 2
ABORT_TIMEOUT_S = 0.5
READY_POLL_S = 0.1


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket; raises Unusable."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        raise Unusable(f"port {port} of {host}: cannot be used: {error}") from None
    return found


def check_state(options: GatewayOptions) -> None:
    """Check that a state directory can be served, before starting anything; raises Unusable."""
    is_postgres(options.ledger)
    state = StateDir(options.state.absolute())
    state.open()
    url = find_server(state)
    if url:
        raise Unusable(f"state {options.state}: is already served at {url}")
    manifest = read_latest(state)
    if manifest is None:
        return
    folder = journal_folder(state)
    if not folder.exists():
        raise Unusable(f"state {options.state}: belongs to a replay or a run and cannot be served")
    check_same(state, manifest, complete_settings(options.settings), identify_journal(folder))


def check_exposure(options: GatewayOptions) -> None:
    """Require at least one API key unless bound to loopback; raises Unusable."""
    if not options.require_keys:
        return
    state = StateDir(options.state)
    state.open()
    ledger = open_ledger(options.ledger or state.root / LEDGER_FILE)
    try:
        if not options.renew_ledger:
            check_ledger(ledger, state)
        elif not is_ledger_of(ledger, state) and not ledger.all_keys():
            raise Unusable(
                f"serve on {options.host}: needs keys, and a ledger that is new has none; renew it"
                " with --host 127.0.0.1, then make one with `placewire keys add NAME --role admin"
                f" --state {options.state}`"
            )
        if not ledger.all_keys():
            raise Unusable(
                f"serve on {options.host}: needs keys, and there is none; make one with"
                f" `placewire keys add NAME --role admin --state {options.state}`"
            )
    finally:
        ledger.close()


def run_gateway(
    options: GatewayOptions, stopping: threading.Event, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until `stopping`; calls `ready` once requests are accepted. Raises Unusable."""
    check_state(options)
    check_exposure(options)
    raise_file_limit()
    sock = listen(options.host, options.port)
    problem: list[Unusable] = []

    async def serve() -> None:
        try:
            gateway = open_gateway(options)
        except Unusable as error:
            problem.append(error)
            return
        if gateway.renewed:
            say(gateway.renewed)
        ready()
        server = uvicorn.Server(configure(make_app(lambda: gateway), options.connection_limits))
        watching = asyncio.create_task(watch(server))
        await server.serve([sock])
        watching.cancel()

    async def watch(server: uvicorn.Server) -> None:
        while not stopping.is_set():
            await asyncio.sleep(0.05)
        server.should_exit = True

    try:
        from uvloop import run  # not on every system
    except ImportError:
        run = asyncio.run  # type: ignore[assignment]
    with contextlib.closing(sock):
        run(serve())
    if problem:
        raise problem[0]


def end_with_parent(stopping: threading.Event) -> None:
    """Stop when standard input closes, which means that the supervisor is gone."""

    def read() -> None:
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 1):
                pass
        stopping.set()
        time.sleep(STOP_TIMEOUT_S)
        os._exit(1)

    threading.Thread(target=read, name="parent", daemon=True).start()


class Child:
    """A child process that is restarted when it exits."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.command = list(command)
        self.process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0
        self.restart_at_s = 0.0
        self.failures = 0

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE)
        self.started_s = time.monotonic()

    def check(self, log: Callable[[str], None]) -> int | None:
        """Restart the process if it is due; returns an exit code that stops the supervisor."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.restart_at_s:
                self.start()
            return None
        code = self.process.poll()
        if code is None:
            return None
        if code == UNUSABLE and not self.failures:
            return code  # only at the first start: later a database may be down briefly
        self.failures = 0 if now - self.started_s > STABLE_S else self.failures
        pause = PAUSES_S[min(self.failures, len(PAUSES_S) - 1)]
        self.failures += 1
        log(f"{self.name}: exited with code {code}; restarting in {pause:g} s")
        self.process, self.restart_at_s = None, now + pause
        return None

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def supervise(
    children: Sequence[Child], stopping: threading.Event, log: Callable[[str], None]
) -> int:
    """Keep children running until `stopping` or until one is unusable; returns an exit code."""
    code = 0
    while not stopping.is_set() and not code:
        for child in children:
            code = code or child.check(log) or 0
        stopping.wait(0.1)
    # Stop the gateway first: everything it has accepted is on disk.
    for child in children:
        child.stop()
    for child in children:
        # If one is unusable, the others have no work worth waiting for.
        child.wait(ABORT_TIMEOUT_S if code else STOP_TIMEOUT_S)
    return code


def call_when_ready(url: str, stopping: threading.Event, act: Callable[[], None]) -> None:
    """Call `act` once the gateway responds at `url`; polls in a thread."""
    place = urlsplit(url)

    def check() -> None:
        while not stopping.wait(READY_POLL_S):
            calling = HTTPConnection(place.hostname or "", place.port, timeout=STOP_TIMEOUT_S)
            with contextlib.suppress(OSError, HTTPException), contextlib.closing(calling):
                calling.request("GET", "/health")
                calling.getresponse().read()
                act()
                return

    threading.Thread(target=check, name="ready", daemon=True).start()


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
