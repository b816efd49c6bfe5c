"""The processes of the service: a gateway, a pipeline, and a supervisor that keeps both up.

Children end when their supervisor does, however that came about: they read its pipe to the end.
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

from placewire.engine.origin import check_same
from placewire.engine.reading import name_journal
from placewire.model.errors import Unusable
from placewire.model.settings import with_identity
from placewire.serve.auth import is_loopback
from placewire.serve.gateway import GatewayOptions, open_gateway
from placewire.serve.http.app import make_app
from placewire.serve.http.connection import configure, raise_file_limit
from placewire.serve.ledger import is_postgres, open_ledger
from placewire.serve.ledger.identity import is_own, refuse_other
from placewire.state.journal import journal_folder
from placewire.state.layout import StateDir
from placewire.state.manifest import read_latest
from placewire.state.serving import running_server

BACKLOG = 4_096
PAUSES_S = (0.2, 1.0, 2.0, 5.0, 10.0)
WELL_S = 30.0  # a child that lived so long begins anew with short pauses
STOPS_S = 30.0
UNUSABLE = 2
UNUSABLE_S = 0.5
READY_LOOKS_S = 0.1


def listen(host: str, port: int) -> socket.socket:
    """The service's port; raises Unusable."""
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
    """See, before anything is started, that a state can be served; raises Unusable."""
    is_postgres(options.ledger)
    state = StateDir(options.state.absolute())
    state.open()
    url = running_server(state)
    if url:
        raise Unusable(f"state {options.state}: is served already, at {url}")
    manifest = read_latest(state)
    if manifest is None:
        return
    folder = journal_folder(state)
    if not folder.exists():
        raise Unusable(f"state {options.state}: is of a replay or a run, which cannot be served")
    check_same(state, manifest, with_identity(options.settings), name_journal(folder))


def check_exposure(options: GatewayOptions) -> None:
    """Beyond this machine nobody may come without a key, so there must be one; raises Unusable."""
    if not options.require_keys:
        return
    state = StateDir(options.state)
    state.open()
    ledger = open_ledger(options.ledger or state.root / "ledger.sqlite")
    try:
        if not options.renew_ledger:
            refuse_other(ledger, state)
        elif not is_own(ledger, state) and not ledger.all_keys():
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


def needs_keys(host: str) -> bool:
    return not is_loopback(host)


def run_gateway(
    options: GatewayOptions, stopping: threading.Event, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until `stopping`, and say when it is `ready`; raises Unusable."""
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
        server = uvicorn.Server(configure(make_app(lambda: gateway), options.patience))
        watching = asyncio.create_task(watch(server))
        await server.serve([sock])
        watching.cancel()

    async def watch(server: uvicorn.Server) -> None:
        while not stopping.is_set():
            await asyncio.sleep(0.05)
        server.should_exit = True

    with contextlib.closing(sock):
        if uses_uvloop():
            import uvloop

            uvloop.run(serve())
        else:
            asyncio.run(serve())
    if problem:
        raise problem[0]


def uses_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401
    except ImportError:
        return False
    return True


def end_with_parent(stopping: threading.Event) -> None:
    """Stop when standard input ends: the supervisor that holds it is gone."""

    def read() -> None:
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 1):
                pass
        stopping.set()
        time.sleep(STOPS_S)
        os._exit(1)

    threading.Thread(target=read, name="parent", daemon=True).start()


class Child:
    """A process that is started again when it dies."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.command = list(command)
        self.process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0
        self.again_s = 0.0
        self.deaths = 0

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE)
        self.started_s = time.monotonic()

    def look(self, tell: Callable[[str], None]) -> int | None:
        """Start it if it is due; gives an exit code that ends everything, if it had one."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.again_s:
                self.start()
            return None
        code = self.process.poll()
        if code is None:
            return None
        if code == UNUSABLE and not self.deaths:
            return code  # at its first start; later it may be a database that is away
        self.deaths = 0 if now - self.started_s > WELL_S else self.deaths
        pause = PAUSES_S[min(self.deaths, len(PAUSES_S) - 1)]
        self.deaths += 1
        tell(f"{self.name}: ended with {code}; again in {pause:g} s")
        self.process, self.again_s = None, now + pause
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
    children: Sequence[Child], stopping: threading.Event, tell: Callable[[str], None]
) -> int:
    """Keep children up until `stopping`, or until one is unusable; gives an exit code."""
    code = 0
    while not stopping.is_set() and not code:
        for child in children:
            code = code or child.look(tell) or 0
        stopping.wait(0.1)
    # The gateway first: what it has accepted is on disk, and nobody is told otherwise.
    for child in children:
        child.stop()
    for child in children:
        # If one is unusable nothing is under way in the others that would be worth waiting for.
        child.wait(UNUSABLE_S if code else STOPS_S)
    return code


def call_when_ready(url: str, stopping: threading.Event, act: Callable[[], None]) -> None:
    """Call once a gateway answers at an address, whatever it says; from a thread."""
    place = urlsplit(url)

    def look() -> None:
        while not stopping.wait(READY_LOOKS_S):
            calling = HTTPConnection(place.hostname or "", place.port, timeout=STOPS_S)
            with contextlib.suppress(OSError, HTTPException), contextlib.closing(calling):
                calling.request("GET", "/health")
                calling.getresponse().read()
                act()
                return

    threading.Thread(target=look, name="ready", daemon=True).start()


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
