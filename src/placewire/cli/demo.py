"""`placewire demo` and `placewire generate`: city life, served live or written to an event log."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from placewire.cli.options import check_runner
from placewire.cli.output import CommandSummary, ProgressLine
from placewire.cli.service_commands import DemoOptions
from placewire.cli.startup import ready_kernels, set_on_signals
from placewire.demo import CityLife, blocks, count_events, readable_subscriptions, write_log
from placewire.demo.vocabulary import stop_words
from placewire.model.errors import Unusable
from placewire.model.times import parse_timestamp

if TYPE_CHECKING:
    from placewire.serve.client import Client

PORT = 7878
CHAPTER_S = 600.0  # of city life generated at a time
TICK_S = 0.25
LINE_EVERY_S = 5.0
UNATTENDED_S = 60.0  # how long it runs without a terminal
START_TIMEOUT_S = 180.0
TRENDING_PACE = {"window": "PT2M", "every": "PT10S"}  # so that a demo shows reports
# Function words would be trending all the time.
SETTINGS = f'stop_words = {json.dumps(stop_words())}\n[window]\ntime = "PT10M"\n'


class EventHead(msgspec.Struct):
    """The fields of an event that decide when it is published."""

    type: str
    ts: str


def run_demo(options: DemoOptions) -> None:
    """Start the service, publish city life to it, and stop it; raises Unusable."""
    from placewire.serve.client import Declined, connect
    from placewire.serve.processes import Child, listen, say, supervise

    check_runner(options.runner)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console(highlight=False, stderr=options.json)
    port = options.port or find_port()
    listen("127.0.0.1", port).close()
    seconds = options.seconds
    if seconds is None and not sys.stdin.isatty():
        seconds = UNATTENDED_S
    stopping = threading.Event()
    set_on_signals(stopping)
    where = "Spark" if options.runner == "spark" else "one core"
    console.print(f"Placewire demo: {options.rate:,} objects/s from 150 cities, matched with")
    console.print(f"{options.subscriptions:,} subscriptions on {where}.")
    ready_kernels()
    with tempfile.TemporaryDirectory(prefix="placewire-demo-") as folder:
        settings = Path(folder) / "settings.toml"
        settings.write_text(SETTINGS)
        command = [sys.executable, "-m", "placewire.cli.main", "serve", "--held", "--quiet"]
        command += ["--state", str(Path(folder) / "state"), "--port", str(port)]
        command += ["--settings", str(settings), "--runner", options.runner]
        command += ["--workers", str(options.workers)]
        children = [Child(part, [*command, "--part", part]) for part in ("gateway", "pipeline")]
        codes: list[int] = []

        def run_children() -> None:
            codes.append(supervise(children, stopping, say))
            stopping.set()

        supervisor = threading.Thread(target=run_children)
        supervisor.start()
        try:
            with connect(f"http://127.0.0.1:{port}", patience_s=0.0) as client:
                play(console, client, options, seconds, stopping)
        except Declined as error:
            if not stopping.is_set():
                raise Unusable(f"demo: the service does not answer: {error}") from None
        finally:
            stopping.set()
            supervisor.join()
        if any(codes):
            raise Unusable("demo: the service failed, see above")


def find_port() -> int:
    """Return the default port, or another if that is taken."""
    for port in (PORT, 0):
        with closing(socket.socket()) as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(found.getsockname()[1])
    raise Unusable("demo: there is no free port")


def play(
    console: Console,
    client: Client,
    options: DemoOptions,
    seconds: float | None,
    stopping: threading.Event,
) -> None:
    """Subscribe, then publish in real time, printing figures every few seconds."""
    if not wait_until_up(client, stopping, 0):
        return
    console.print(f"\n  Live map: [bold]{client.calls.url}[/]  (Ctrl-C stops the demo)\n")
    subscribe(client, options)
    what = "Starting Spark" if options.runner == "spark" else "Starting the pipeline"
    with elapsed(console, what):
        if not wait_until_up(client, stopping, 1):
            return
    ends_s = time.monotonic() + seconds if seconds is not None else float("inf")
    next_line_s = time.monotonic() + LINE_EVERY_S
    threading.Thread(target=print_results, args=(console, client, stopping), daemon=True).start()
    for lines in objects_in_time(options):
        if stopping.is_set() or time.monotonic() >= ends_s:
            break
        send(client, "objects", lines)
        if time.monotonic() >= next_line_s:
            next_line_s += LINE_EVERY_S
            console.print(format_figures(client.status(0)["service"]), style="dim")
    service = client.status(0)["service"]
    if seconds is not None and not stopping.is_set():
        console.print(f"\nStopped after {seconds:g} s (--for sets how long).")
    console.print("\n" + format_figures(service))
    if options.json:
        print(json.dumps(service))


@contextlib.contextmanager
def elapsed(console: Console, what: str) -> Iterator[None]:
    """Show how long a phase has taken: as a running clock, or as lines without a terminal."""
    if console.is_terminal:
        columns = TextColumn(f"  {what}"), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True) as progress:
            progress.add_task("")
            yield
        return
    done = threading.Event()

    def report() -> None:
        while True:
            console.print(f"  {what}  {int(time.monotonic() - started_s)} s")
            if done.wait(LINE_EVERY_S):
                return

    started_s = time.monotonic()
    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        done.set()
        reporter.join()


def wait_until_up(client: Client, stopping: threading.Event, committed: int) -> bool:
    """Wait until so many events are committed; false if stopped first. Raises Unusable."""
    from placewire.serve.client import Declined

    ends_s = time.monotonic() + START_TIMEOUT_S
    while not stopping.wait(0.1):
        with contextlib.suppress(Declined):
            if client.health()["committed_seq"] >= committed:
                return True
        if time.monotonic() > ends_s:
            raise Unusable(f"demo: the service did not start within {START_TIMEOUT_S:g} s")
    return False


def send(client: Client, what: str, lines: list[bytes]) -> None:
    """Post lines of objects or subscriptions."""
    from placewire.serve.client.client import NDJSON

    client.calls.ask("POST", f"/v1/{what}", content=b"\n".join(lines), headers=NDJSON)


def subscribe(client: Client, options: DemoOptions) -> None:
    """Subscribe to the readable subscriptions, and under another key to generated ones."""
    from placewire.serve.client import connect

    own = [
        msgspec.json.encode(event | (TRENDING_PACE if event["kind"] == "trending" else {}))
        for event in readable_subscriptions()[: options.subscriptions]
    ]
    send(client, "subscriptions", own)
    crowd = [
        line
        for block in blocks(city_life(options, options.seed, 0.0))
        for line in block.splitlines()
        if msgspec.json.decode(line, type=EventHead).type == "subscribe"
    ][len(own) :]
    if crowd:
        key = client.add_key("crowd", ["subscribe"])["key"]
        with connect(client.calls.url, key) as other:
            for first in range(0, len(crowd), 5_000):
                send(other, "subscriptions", crowd[first : first + 5_000])


def city_life(options: DemoOptions, seed: int, rate: float) -> CityLife:
    """Return the next ten minutes of city life."""
    start = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    objects = round(rate * CHAPTER_S)
    return CityLife(
        seed, objects, options.subscriptions if not rate else 0, start, CHAPTER_S, queries=0
    )


def objects_in_time(options: DemoOptions) -> Iterator[list[bytes]]:
    """Yield objects in real time, without end."""
    seed = options.seed
    while True:
        waiting: list[bytes] = []
        for block in blocks(city_life(options, seed, options.rate), 2_000):
            for line in block.splitlines():
                head = msgspec.json.decode(line, type=EventHead)
                if head.type != "object":
                    continue
                early_s = parse_timestamp(head.ts) / 1e6 - time.time()
                if early_s > 0 and waiting:
                    yield waiting
                    waiting = []
                if early_s > 0:
                    time.sleep(max(early_s, TICK_S))
                waiting.append(line)
        yield waiting
        seed += 1


def print_results(console: Console, client: Client, stopping: threading.Event) -> None:
    """Print a result that has words every few seconds."""
    from placewire.cli.pubsub import format_result
    from placewire.serve.client import Declined

    last_s = 0.0
    with contextlib.suppress(Declined):
        for got in client.tail(objects=True):
            if stopping.is_set():
                return
            has_words = got.get("objects") or got["result"].get("terms")
            if has_words and time.monotonic() - last_s > LINE_EVERY_S / 3:
                last_s = time.monotonic()
                console.print(" ", format_result(got, alone=False), soft_wrap=True)


def format_figures(service: dict[str, Any]) -> str:
    """Format the figures of the service on one line."""
    took = service["latency_ms"]["p50"]
    line = f"{service['seq']:,} events, {service['results']:,} results"
    line += f", {service['objects_per_s']:,.0f} objects/s"
    return line + (f", latency p50 {took / 1000:.2f} s" if took is not None else "")


def run_generate(life: CityLife, log: Path) -> CommandSummary:
    """Write an event log of city life and summarize it; raises Unusable."""
    next(blocks(life, 1), None)  # reject bad options before an old file is truncated
    started = time.monotonic()
    with ProgressLine("generate", count_events(life)) as progress:

        def show(done: int, total: int) -> None:
            progress.update(done, f"{done} of {total} events")

        try:
            events = write_log(life, log, show)
            size = log.stat().st_size
        except OSError as error:
            raise Unusable(f"{log}: cannot be written: {error.strerror}") from None
    seconds = time.monotonic() - started
    facts = {"events": events, "bytes": size, "seconds": round(seconds, 3)}
    return CommandSummary(f"events {events}, bytes {size}, {seconds:.1f} s", facts)
