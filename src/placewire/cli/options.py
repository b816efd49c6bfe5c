"""Options that several commands share: types, checks of numbers and shell completion."""

from __future__ import annotations

import inspect
import math
import sqlite3
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from placewire.cli.connection import SERVER_VARIABLE, STATE_VARIABLE, find_target, read_target
from placewire.model.errors import Unusable

ROLES = ("publish", "subscribe", "admin")
MAX_COMPLETED_IDS = 200
COMPLETION_TIMEOUT_S = 0.5

Command = Callable[..., None]

JsonOption = Annotated[bool, Option("--json", help="Print one JSON object.")]
JsonLinesOption = Annotated[bool, Option("--json", help="Print a JSON object for each.")]
ServerOption = Annotated[
    str | None,
    Option(
        "--server",
        metavar="URL",
        help="A running service, such as http://127.0.0.1:7878;"
        f" by default that of {SERVER_VARIABLE}.",
    ),
]
StateOption = Annotated[
    Path | None,
    Option(
        "--state", metavar="DIR", help=f"A state directory; by default that of {STATE_VARIABLE}."
    ),
]
KeyOption = Annotated[
    str | None,
    Option(
        "--key",
        metavar="KEY",
        envvar="PLACEWIRE_KEY",
        help="The API key for the server.",
        show_default=False,
    ),
]
LedgerOption = Annotated[
    str,
    Option(
        "--ledger",
        metavar="URL",
        help="The state's ledger, if it is in PostgreSQL.",
        show_default=False,
    ),
]


def with_target(ledger: bool = False, optional: bool = False) -> Callable[[Command], Command]:
    """Decorate a command: options that name a server or a state become its parameter `target`.

    The target is None if it is optional and neither options nor environment name one.
    """
    added: dict[str, Any] = {"server": ServerOption, "state": StateOption, "key": KeyOption}
    added |= {"ledger": LedgerOption} if ledger else {}
    find = find_target if optional else read_target

    def wrap(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)

        @wraps(command)
        def run(**given: Any) -> None:
            command(target=find(**{name: given.pop(name) for name in added}), **given)

        given_as = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=option,
                default="" if name == "ledger" else None,
            )
            for name, option in added.items()
        ]
        parameters: list[inspect.Parameter] = []
        for one in signature.parameters.values():
            parameters += given_as if one.name == "target" else [one]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return wrap


def check_runner(runner: str) -> None:
    """Raise Unusable unless a runner is known."""
    if runner not in ("spark", "local"):
        raise Unusable(f"runner: must be spark or local, got {runner!r}")


def number_option(
    kind: type[int] | type[float],
    help: str,
    least: float,
    most: float = math.inf,
    name: str | None = None,
    **more: Any,
) -> Any:
    """Return an option that takes a number from `least` to `most`.

    It is checked here rather than by Typer so that the error shows the value that was given.
    """
    named = "a whole number" if kind is int else "a number"
    span = f"{least} or more" if most == math.inf else f"{least}..{most}"

    def check(param: typer.CallbackParam, value: Any) -> Any:
        if value is None:
            return None
        try:
            given = kind(value)
        except ValueError:
            given = kind(least - 1)
        if not least <= given <= most:
            raise Unusable(f"{param.opts[0]}: must be {named}, {span}, got {value}")
        return given

    names = () if name is None else (name,)
    return Option(*names, help=help, parser=str, callback=check, metavar=span, **more)


def with_prefix(words: tuple[str, ...] | list[str], prefix: str) -> list[str]:
    """Return the words that start with a prefix."""
    return [word for word in words if word.startswith(prefix)]


def complete_kind(incomplete: str) -> list[str]:
    """Complete the kind of a subscription."""
    from placewire.model.kinds import kind_names

    return with_prefix(kind_names(), incomplete)


def complete_role(incomplete: str) -> list[str]:
    """Complete the role of an API key."""
    return with_prefix(ROLES, incomplete)


def complete_plan(incomplete: str) -> list[str]:
    """Complete the name of a plan of any kind."""
    from placewire.plans.names import PLANS

    return with_prefix(
        list(dict.fromkeys(name for names in PLANS.values() for name in names)), incomplete
    )


def complete_boolean_plan(incomplete: str) -> list[str]:
    """Complete the name of a boolean plan that can be requested."""
    from placewire.plans.boolean.methods import METHODS

    return with_prefix(["shared", *METHODS], incomplete)


def complete_rebalance(incomplete: str) -> list[str]:
    """Complete the name of a rebalancing strategy."""
    from placewire.plans.rebalance.rebalancer import REBALANCERS

    return with_prefix(REBALANCERS, incomplete)


def complete_subscription(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the id of a subscription from a state's ledger or a server; nothing on failure."""
    given = context.params
    state = given.get("state")
    try:
        target = read_target(given.get("server"), Path(state) if state else None, given.get("key"))
        if target.state is not None:
            return read_ledger_ids(target.state / "ledger.sqlite", incomplete)
        from placewire.serve.client import Client

        with Client(target.server or "", target.key, patience_s=0.0) as client:
            client.calls.http.timeout = COMPLETION_TIMEOUT_S
            limit = {"limit": str(MAX_COMPLETED_IDS)}
            page = client.calls.ask("GET", "/v1/subscriptions", params=limit)
            return with_prefix([one["id"] for one in page["subscriptions"]], incomplete)
    except (Unusable, OSError, sqlite3.Error):
        return []


def read_ledger_ids(path: Path, prefix: str) -> list[str]:
    """Read the ids of live subscriptions that start with a prefix from a ledger file."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=COMPLETION_TIMEOUT_S
    )
    try:
        rows = connection.execute(
            "SELECT id FROM subscription WHERE ended_seq IS NULL AND substr(id, 1, ?) = ?"
            " ORDER BY id LIMIT ?",
            (len(prefix), prefix, MAX_COMPLETED_IDS),
        ).fetchall()
    finally:
        connection.close()
    return [str(row[0]) for row in rows]
