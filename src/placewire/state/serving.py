"""Who serves a state: the address of the gateway that has its journal, for others to find."""

from __future__ import annotations

import fcntl
import os

import msgspec

from placewire.model.errors import Unusable
from placewire.state.journal import journal_folder
from placewire.state.layout import StateDir, write_file

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
