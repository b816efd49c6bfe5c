"""Small files through which processes that share a state inform each other.

SERVER.json has the address of the server, ASKED.json a requested plan, and LAG.json how far a run
is behind its sources.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from typing import Any

import msgspec

from placewire.model.errors import Unusable
from placewire.storage.filesystem import Unreachable
from placewire.storage.journal import journal_folder
from placewire.storage.layout import StateDir, write_file
from placewire.storage.manifest import Manifest, read_latest
from placewire.storage.mirror import read_file

SERVER_FILE = "SERVER.json"
ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class Server(msgspec.Struct, frozen=True):
    """Where a server listens, and whether its ledger is a file of the state or a database."""

    url: str = ""
    ledger: str = "file"  # or postgresql


def make_url(host: str, port: int) -> str:
    """Return the URL of a port of this machine."""
    host = ANY_HOST.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def write_server(state: StateDir, server: Server) -> None:
    """Record the server's address; it is valid while the server holds the journal's lock."""
    try:
        write_file(state.root / SERVER_FILE, msgspec.json.encode(server))
    except OSError as error:
        raise Unusable(f"state {state.root}: cannot be written: {error.strerror}") from None


def read_server(state: StateDir) -> Server:
    """Read the address of the last server of the state, running or not."""
    try:
        return msgspec.json.decode((state.root / SERVER_FILE).read_bytes(), type=Server)
    except (OSError, msgspec.DecodeError, UnicodeError):
        return Server()


def find_server(state: StateDir) -> str:
    """Return the URL of the running server; empty if none runs.

    Raises Unusable if the journal is locked by a process without an address.
    """
    try:
        descriptor = os.open(journal_folder(state) / "LOCK", os.O_RDONLY)
    except OSError:
        return ""
    try:
        # Released at once: a server that is starting retries.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        if url := read_server(state).url:
            return url
        raise Unusable(f"state {state.root}: is in use: use --server ADDRESS") from None
    finally:
        os.close(descriptor)
    return ""


REQUEST_FILE = "ASKED.json"
MOST_WORKERS = 4_096


class PlanRequest(msgspec.Struct, frozen=True):
    """A requested plan or number of workers; a manifest names the id once it is taken up."""

    id: str
    plan: str = ""
    workers: int = 0

    def wish(self) -> dict[str, Any]:
        """Return the requested fields, as HTTP requests have them."""
        wanted = {"plan": self.plan, "workers": self.workers}
        return {name: value for name, value in wanted.items() if value}


def request_plan(state: StateDir, plan: str = "", workers: int = 0) -> PlanRequest:
    """Request a plan or a number of workers; raises Unusable.

    The other field of a request that is still pending stays.
    """
    latest = read_latest(state)
    waiting = read_pending_request(state, latest)
    if waiting is not None:
        plan, workers = plan or waiting.plan, workers or waiting.workers
    asked = PlanRequest(secrets.token_hex(8), plan, workers)
    try:
        write_file(state.root / REQUEST_FILE, msgspec.json.encode(asked))
    except OSError as error:
        raise Unusable(f"state {state}: cannot be written: {error.strerror}") from None
    return asked


def read_pending_request(state: StateDir, latest: Manifest | None) -> PlanRequest | None:
    """Read the plan request that no commit up to the latest has taken up, if there is one."""
    asked = read_request(state)
    taken = "" if latest is None else latest.leaf_plan.asked
    return None if asked is None or asked.id == taken else asked


def read_request(state: StateDir) -> PlanRequest | None:
    """Read the last plan request; None if there is no readable one."""
    try:
        asked = msgspec.json.decode(read_file(state.root / REQUEST_FILE), type=PlanRequest)
        return asked if 0 <= asked.workers <= MOST_WORKERS else None
    except (OSError, msgspec.DecodeError, UnicodeError):
        return None


LAG_FILE = "LAG.json"


class SourceLag(msgspec.Struct, frozen=True, omit_defaults=True):
    """The lag of one source: messages of a topic, also by partition, or files.

    `versions` counts table versions after the one whose files are counted. `taken` is the time of
    the newest file that was read. Unknown values are None.
    """

    source: str
    messages: int | None = None
    partitions: dict[str, int] = {}
    files: int | None = None
    bytes: int | None = None
    versions: int | None = None
    taken: str | None = None


class Lag(msgspec.Struct, frozen=True):
    """The lag of all sources, and the committed batches that each sink lacks, at one time."""

    at: str
    sources: list[SourceLag]
    sinks: dict[str, int] = {}


def write_lag(state: StateDir, lag: Lag) -> None:
    """Record the lag; errors of the disk or the store are reported elsewhere."""
    with contextlib.suppress(OSError, Unreachable):
        write_file(state.root / LAG_FILE, msgspec.json.encode(lag))


def read_lag(state: StateDir) -> Lag | None:
    """Read the last recorded lag; None if there is no readable one."""
    try:
        return msgspec.json.decode(read_file(state.root / LAG_FILE), type=Lag)
    except (OSError, msgspec.DecodeError, UnicodeError):
        return None
