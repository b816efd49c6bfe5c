"""Where a command goes: a server by its address, or a state directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from placewire.model.errors import Unusable

if TYPE_CHECKING:
    from placewire.serve.client import Client
    from placewire.serve.offline import OfflineReader as Books
    from placewire.serve.offline import OfflineWriter as Unserved

SERVER, STATE = "PLACEWIRE_SERVER", "PLACEWIRE_STATE"

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help=f"A running service, as http://127.0.0.1:7878; otherwise {SERVER} says which.",
    ),
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR", help=f"A state directory; otherwise {STATE} says which."
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        envvar="PLACEWIRE_KEY",
        help="The key for the server.",
        show_default=False,
    ),
]
LedgerOption = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="The state's ledger, if it is in PostgreSQL.",
        show_default=False,
    ),
]


class Target(NamedTuple):
    """A server or a state, one of them."""

    server: str | None
    state: Path | None
    key: str | None = None
    ledger: str = ""


def read_target(
    server: str | None, state: Path | None, key: str | None = None, ledger: str = ""
) -> Target:
    """What was typed, or what the environment says; raises Unusable unless it is one place."""
    if server is None and state is None:
        server = os.environ.get(SERVER) or None
        kept = os.environ.get(STATE)
        state = Path(kept) if kept else None
        if server is None and state is None:
            raise Unusable(
                f"where to? give --server URL or --state DIR, or set {SERVER} or {STATE}"
            )
        if server is not None and state is not None:
            raise Unusable(f"{SERVER} and {STATE} are both set: give --server or --state")
    if server is not None and state is not None:
        raise Unusable("give --server or --state, one of them")
    return Target(server, state, key, ledger)


def find_target(server: str | None, state: Path | None, key: str | None) -> Target | None:
    """As `read_target`, for a command that can do without: None if nothing says where."""
    if server is None and state is None and not (os.environ.get(SERVER) or os.environ.get(STATE)):
        return None
    return read_target(server, state, key)


@contextmanager
def open_reader(target: Target, make: bool = False) -> Iterator[Client | Books]:
    """What subscriptions, results and keys are read from; raises Unusable.

    With `make` a state and its ledger are made if they are not there.
    """
    if target.state is not None:
        from placewire.serve.offline import OfflineReader as Books

        with telling_of_ledgers(), closing(Books(target.state, target.ledger, make)) as books:
            yield books
        return
    with open_client(target) as client:
        yield client


@contextmanager
def open_writer(target: Target) -> Iterator[Client | Unserved]:
    """What takes objects and subscriptions; raises Unusable.

    A state that is served is written by its server, which is found by itself.
    """
    if target.state is not None:
        from placewire.engine.standing import open_state
        from placewire.state.serving import running_server

        url = running_server(open_state(target.state))
        if not url:
            from placewire.serve.offline import OfflineWriter as Unserved

            with telling_of_ledgers(), closing(Unserved(target.state, target.ledger)) as unserved:
                yield unserved
            return
        target = target._replace(server=url)
    with open_client(target) as client:
        yield client


@contextmanager
def telling_of_ledgers() -> Iterator[None]:
    """A ledger that cannot be used makes the command unusable."""
    from placewire.serve.errors import Unavailable

    try:
        yield
    except Unavailable as error:
        raise Unusable(str(error)) from None


@contextmanager
def open_client(target: Target) -> Iterator[Client]:
    """A client of the target's server; raises Unusable."""
    from placewire.serve.client import connect

    with connect(target.server or "", target.key) as client:
        yield client
