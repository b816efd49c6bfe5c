"""What commands share: the application, options, shell completion, and the target of a command.

A target is a server or a state directory; `open_client`, `open_reader` and `open_writer` open it.
"""

from __future__ import annotations

import inspect
import math
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer
from typer import Option

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
                "needs --server URL (such as http://127.0.0.1:7878) or --state DIR,"
                f" or {SERVER_VARIABLE} or {STATE_VARIABLE}"
            )
        if server is not None and state is not None:
            raise Unusable(
                f"{SERVER_VARIABLE} and {STATE_VARIABLE} are both set: give --server or --state"
            )
    if server is not None and state is not None:
        raise Unusable("give --server or --state, not both")
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
    from placewire.serve import Unavailable

    try:
        yield
    except Unavailable as error:
        raise Unusable(str(error)) from None


app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

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
        help=f"Server, such as http://127.0.0.1:7878. Default: ${SERVER_VARIABLE}.",
    ),
]
StateOption = Annotated[
    Path | None,
    Option("--state", metavar="DIR", help=f"State directory. Default: ${STATE_VARIABLE}."),
]
KeyOption = Annotated[
    str | None,
    Option(
        "--key",
        metavar="KEY",
        envvar="PLACEWIRE_KEY",
        show_envvar=False,
        help="API key for the server. Default: $PLACEWIRE_KEY.",
        show_default=False,
    ),
]
LedgerOption = Annotated[
    str,
    Option(
        "--ledger",
        metavar="URL",
        help="Ledger of the state, if it is in PostgreSQL.",
        show_default=False,
    ),
]


def with_options(command: Callable[[Any], None]) -> Command:
    """Decorate a command whose parameter is a NamedTuple: each field becomes an option."""
    (parameter,) = inspect.signature(command, eval_str=True).parameters.values()
    options = parameter.annotation
    hints = get_type_hints(options, include_extras=True)

    @wraps(command)
    def run(**given: Any) -> None:
        command(options(**given))

    defaults = options._field_defaults
    return set_parameters(run, [keyword(name, hints[name], defaults) for name in options._fields])


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

        defaults = {name: "" if name == "ledger" else None for name in added}
        target = [keyword(name, option, defaults) for name, option in added.items()]
        parameters: list[inspect.Parameter] = []
        for one in signature.parameters.values():
            parameters += target if one.name == "target" else [one]
        return set_parameters(run, parameters)

    return wrap


def keyword(name: str, option: Any, defaults: dict[str, Any]) -> inspect.Parameter:
    default = defaults.get(name, inspect.Parameter.empty)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=option, default=default
    )


def set_parameters(run: Command, parameters: list[inspect.Parameter]) -> Command:
    """Set the signature of a command from which Typer takes its options."""
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


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
    return [word for word in words if word.startswith(prefix)]


def complete_kind(incomplete: str) -> list[str]:
    from placewire.model.kinds import kind_names

    return with_prefix(kind_names(), incomplete)


def complete_role(incomplete: str) -> list[str]:
    return with_prefix(ROLES, incomplete)


def complete_plan(incomplete: str) -> list[str]:
    from placewire.plans.names import PLANS

    return with_prefix([*dict.fromkeys(chain(*PLANS.values()))], incomplete)


def complete_boolean_plan(incomplete: str) -> list[str]:
    """Complete the name of a boolean plan that can be requested."""
    from placewire.plans.boolean.methods import METHODS

    return with_prefix(["shared", *METHODS], incomplete)


def complete_rebalance(incomplete: str) -> list[str]:
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


def show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        print(f"placewire {version('placewire')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def placewire(
    context: typer.Context,
    _: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=show_version, help="Show the version."),
    ] = False,
) -> None:
    """Match geo-tagged text against standing subscriptions."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def exit_with(code: int) -> None:
    """Exit with the code of a command that failed in part; zero lets it return."""
    if code:
        raise typer.Exit(code)
