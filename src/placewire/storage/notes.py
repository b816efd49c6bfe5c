"""Who serves a state: the address of the gateway that has its journal, for others to find."""

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

NOTE = "SERVER.json"
ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class Server(msgspec.Struct, frozen=True):
    """Where a gateway listens, and whether its ledger is a file of the state or elsewhere."""

    url: str = ""
    ledger: str = "file"  # or postgresql


def address_of(host: str, port: int) -> str:
    """The address by which this machine reaches a port."""
    host = ANY_HOST.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def note_server(state: StateDir, server: Server) -> None:
    """Leave the note; it stays, and counts while the journal is held."""
    try:
        write_file(state.root / NOTE, msgspec.json.encode(server))
    except OSError as error:
        raise Unusable(f"state {state.root}: cannot be written: {error.strerror}") from None


def last_server(state: StateDir) -> Server:
    """The last gateway that the state had, running or not."""
    try:
        return msgspec.json.decode((state.root / NOTE).read_bytes(), type=Server)
    except (OSError, msgspec.DecodeError, UnicodeError):
        return Server()


def running_server(state: StateDir) -> str:
    """The address of the gateway that has the journal; empty if nobody has it.

    Raises Unusable if somebody has it who left no address.
    """
    try:
        descriptor = os.open(journal_folder(state) / "LOCK", os.O_RDONLY)
    except OSError:
        return ""
    try:
        # For a moment only: a gateway that starts just now tries again.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        if url := last_server(state).url:
            return url
        raise Unusable(f"state {state.root}: is in use: use --server ADDRESS") from None
    finally:
        os.close(descriptor)
    return ""


ASKING_NOTE = "ASKED.json"
MOST_WORKERS = 4_096


class PlanRequest(msgspec.Struct, frozen=True):
    """A plan by name, a number of workers, and the id by which a manifest says it was taken up."""

    id: str
    plan: str = ""
    workers: int = 0

    def wish(self) -> dict[str, Any]:
        """What is wanted, as it is asked for over HTTP."""
        wanted = {"plan": self.plan, "workers": self.workers}
        return {name: value for name, value in wanted.items() if value}


def ask_plan(state: StateDir, plan: str = "", workers: int = 0) -> PlanRequest:
    """Leave a note that a plan or a number of workers is wanted; raises Unusable.

    Of what was asked for before and nobody has taken up, the other one stays.
    """
    latest = read_latest(state)
    waiting = read_waiting(state, latest)
    if waiting is not None:
        plan, workers = plan or waiting.plan, workers or waiting.workers
    asked = PlanRequest(secrets.token_hex(8), plan, workers)
    try:
        write_file(state.root / ASKING_NOTE, msgspec.json.encode(asked))
    except OSError as error:
        raise Unusable(f"state {state}: cannot be written: {error.strerror}") from None
    return asked


def read_waiting(state: StateDir, latest: Manifest | None) -> PlanRequest | None:
    """Read the plan request that no commit up to the latest has taken up, if there is one."""
    asked = read_asked(state)
    taken = "" if latest is None else latest.leaf_plan.asked
    return None if asked is None or asked.id == taken else asked


def read_asked(state: StateDir) -> PlanRequest | None:
    """The note, if there is a readable one."""
    try:
        asked = msgspec.json.decode(read_file(state.root / ASKING_NOTE), type=PlanRequest)
        return asked if 0 <= asked.workers <= MOST_WORKERS else None
    except (OSError, msgspec.DecodeError, UnicodeError):
        return None


LAG_NOTE = "LAG.json"


class SourceLag(msgspec.Struct, frozen=True, omit_defaults=True):
    """What waits in one source: messages of a topic, also by partition, or files.

    `versions` are those of a table after the one whose files are told. `taken` is the time of the
    newest file that was taken. What a source does not tell is None.
    """

    source: str
    messages: int | None = None
    partitions: dict[str, int] = {}
    files: int | None = None
    bytes: int | None = None
    versions: int | None = None
    taken: str | None = None


class Lag(msgspec.Struct, frozen=True):
    """All sources, and how many committed batches each sink lacks, at one time."""

    at: str
    sources: list[SourceLag]
    sinks: dict[str, int] = {}


def note_lag(state: StateDir, lag: Lag) -> None:
    """Leave the note; a disk that is full or a store that is away is told of elsewhere."""
    with contextlib.suppress(OSError, Unreachable):
        write_file(state.root / LAG_NOTE, msgspec.json.encode(lag))


def read_lag(state: StateDir) -> Lag | None:
    """The note, if there is a readable one."""
    try:
        return msgspec.json.decode(read_file(state.root / LAG_NOTE), type=Lag)
    except (OSError, msgspec.DecodeError, UnicodeError):
        return None
