"""Connect a command to a server or to a state directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from placewire.model.errors import Unusable

if TYPE_CHECKING:
    from placewire.serve.client import Client
    from placewire.serve.offline import OfflineReader, OfflineWriter

SERVER_VARIABLE, STATE_VARIABLE = "PLACEWIRE_SERVER", "PLACEWIRE_STATE"


class CommandTarget(NamedTuple):
    """The server or the state directory that a command uses; one of them is None."""

    server: str | None
    state: Path | None
    key: str | None = None
    ledger: str = ""


def read_target(
    server: str | None, state: Path | None, key: str | None = None, ledger: str = ""
) -> CommandTarget:
    """Return the target of the options, or of the environment if they name none.

    Raises Unusable unless exactly one server or state directory is given.
    """
    if server is None and state is None:
        server = os.environ.get(SERVER_VARIABLE) or None
        from_environment = os.environ.get(STATE_VARIABLE)
        state = Path(from_environment) if from_environment else None
        if server is None and state is None:
            raise Unusable(
                "where to? give --server URL or --state DIR,"
                f" or set {SERVER_VARIABLE} or {STATE_VARIABLE}"
            )
        if server is not None and state is not None:
            raise Unusable(
                f"{SERVER_VARIABLE} and {STATE_VARIABLE} are both set: give --server or --state"
            )
    if server is not None and state is not None:
        raise Unusable("give --server or --state, one of them")
    return CommandTarget(server, state, key, ledger)


def find_target(server: str | None, state: Path | None, key: str | None) -> CommandTarget | None:
    """Like `read_target`, but return None if neither options nor environment name a target."""
    in_environment = os.environ.get(SERVER_VARIABLE) or os.environ.get(STATE_VARIABLE)
    if server is None and state is None and not in_environment:
        return None
    return read_target(server, state, key)


@contextmanager
def open_client(target: CommandTarget) -> Iterator[Client]:
    """Open a client of the target's server; raises Unusable."""
    from placewire.serve.client import connect

    with connect(target.server or "", target.key) as client:
        yield client


@contextmanager
def open_reader(target: CommandTarget, make: bool = False) -> Iterator[Client | OfflineReader]:
    """Open a reader of subscriptions, results and keys; raises Unusable.

    With `make`, create the state and its ledger if they do not exist.
    """
    if target.state is not None:
        from placewire.serve.offline import OfflineReader

        with (
            ledger_errors_unusable(),
            closing(OfflineReader(target.state, target.ledger, make)) as reader,
        ):
            yield reader
        return
    with open_client(target) as client:
        yield client


@contextmanager
def open_writer(target: CommandTarget) -> Iterator[Client | OfflineWriter]:
    """Open a writer of objects and subscriptions; raises Unusable.

    While a server runs on a state directory, writes go through that server.
    """
    if target.state is not None:
        from placewire.status import open_state
        from placewire.storage.runtime_files import find_server

        url = find_server(open_state(target.state))
        if not url:
            from placewire.serve.offline import OfflineWriter

            with (
                ledger_errors_unusable(),
                closing(OfflineWriter(target.state, target.ledger)) as writer,
            ):
                yield writer
            return
        target = target._replace(server=url)
    with open_client(target) as client:
        yield client


@contextmanager
def ledger_errors_unusable() -> Iterator[None]:
    """Raise Unusable for a ledger that is not available."""
    from placewire.serve.errors import Unavailable

    try:
        yield
    except Unavailable as error:
        raise Unusable(str(error)) from None
