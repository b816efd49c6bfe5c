"""`placewire demo`: the service at work on city life, to watch in a browser."""

from __future__ import annotations

import json
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
from rich.console import Console

from placewire.cli.kernels import ready_kernels
from placewire.demo import CityLife, blocks, readable_subscriptions
from placewire.demo.vocabulary import stop_words
from placewire.model.errors import Unusable
from placewire.model.times import parse_timestamp

PORT = 7878
CHAPTER_S = 600.0  # of city life, after which another begins
TICK_S = 0.25
SAYS_S = 5.0
ALONE_S = 60.0  # how long it runs when nobody sits at a terminal
STARTS_S = 180.0
PACE = {"window": "PT2M", "every": "PT10S"}  # of what is trending: minutes are long in a demo
# Small words are left out: what is trending shall be what people talk about.
SETTINGS = f'stop_words = {json.dumps(stop_words())}\n[window]\ntime = "PT10M"\n'
LINES = {"content-type": "application/x-ndjson"}


class DemoOptions(NamedTuple):
    """What the user typed."""

    rate: int
    subscriptions: int
    seed: int
    workers: int
    runner: str
    port: int | None
    seconds: float | None
    json: bool = False


class Head(msgspec.Struct):
    """What the player looks at in a line."""

    type: str
    ts: str


def run_demo(options: DemoOptions) -> None:
    """Start the service, play, and end it; raises Unusable."""
    from placewire.serve.processes import Child, listen, say, supervise

    if options.runner not in ("spark", "local"):
        raise Unusable(f"runner: must be spark or local, got {options.runner!r}")
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console(highlight=False, stderr=options.json)
    port = options.port or find_port()
    listen("127.0.0.1", port).close()
    seconds = options.seconds
    if seconds is None and not sys.stdin.isatty():
        seconds = ALONE_S
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    where = "Spark" if options.runner == "spark" else "one core"
    console.print(f"Placewire demo: {options.rate:,} texts a second from 150 cities, matched with")
    console.print(f"{options.subscriptions:,} standing subscriptions on {where}.")
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

        def keep_up() -> None:
            codes.append(supervise(children, stopping, say))
            stopping.set()

        keeper = threading.Thread(target=keep_up)
        keeper.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
                play(console, http, options, seconds, stopping)
        except httpx.HTTPError as error:
            if not stopping.is_set():
                raise Unusable(f"demo: the service does not answer: {error}") from None
        finally:
            stopping.set()
            keeper.join()
        if any(codes):
            raise Unusable("demo: the service could not run, see above")


def find_port() -> int:
    """The usual port, or another if that is taken."""
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
    http: httpx.Client,
    options: DemoOptions,
    seconds: float | None,
    stopping: threading.Event,
) -> None:
    """Subscribe, then publish as time goes, telling now and then how it stands."""
    if not wait_until_up(http, stopping, lambda health: True):
        return
    console.print(f"\n  [bold]{str(http.base_url).rstrip('/')}[/]  shows it; Ctrl-C ends it\n")
    subscribe(http, options)
    if not wait_until_up(http, stopping, lambda health: health["committed_seq"] > 0):
        return
    ends_s = time.monotonic() + seconds if seconds is not None else float("inf")
    telling_s = time.monotonic() + SAYS_S
    reader = threading.Thread(target=read_aloud, args=(console, http, stopping), daemon=True)
    reader.start()
    for lines in pace(options):
        if stopping.is_set() or time.monotonic() >= ends_s:
            break
        http.post("/v1/objects", content=b"\n".join(lines), headers=LINES).raise_for_status()
        if time.monotonic() >= telling_s:
            telling_s += SAYS_S
            console.print(figures(http), style="dim")
    console.print("\n" + figures(http))
    if options.json:
        print(json.dumps(http.get("/v1/status").json()["service"]))


def wait_until_up(
    http: httpx.Client, stopping: threading.Event, holds: Callable[[dict[str, Any]], bool]
) -> bool:
    """Wait for the service to be so far; false if it was stopped before. Raises Unusable."""
    ends_s = time.monotonic() + STARTS_S
    while not stopping.wait(0.1):
        try:
            if holds(http.get("/health").json()):
                return True
        except httpx.TransportError:
            pass
        if time.monotonic() > ends_s:
            raise Unusable(f"demo: the service did not start within {STARTS_S:g} s")
    return False


def subscribe(http: httpx.Client, options: DemoOptions) -> None:
    """The readable subscriptions as one's own, a crowd's as somebody else's."""
    own = [
        {**wish, **(PACE if wish["kind"] == "trending" else {})}
        for wish in readable_subscriptions()[: options.subscriptions]
    ]
    body = b"\n".join(msgspec.json.encode(wish) for wish in own)
    http.post("/v1/subscriptions", content=body, headers=LINES).raise_for_status()
    crowd = [
        line
        for block in blocks(city_life(options, options.seed, 0.0))
        for line in block.splitlines()
        if msgspec.json.decode(line, type=Head).type == "subscribe"
    ][len(own) :]
    if crowd:
        made = http.post("/v1/keys", json={"name": "crowd", "roles": ["subscribe"]})
        headers = {**LINES, "authorization": f"Bearer {made.raise_for_status().json()['key']}"}
        for first in range(0, len(crowd), 5_000):
            some = b"\n".join(crowd[first : first + 5_000])
            http.post("/v1/subscriptions", content=some, headers=headers).raise_for_status()


def city_life(options: DemoOptions, seed: int, rate: float) -> CityLife:
    """Ten minutes of it, from now on."""
    start = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    objects = round(rate * CHAPTER_S)
    return CityLife(
        seed, objects, options.subscriptions if not rate else 0, start, CHAPTER_S, queries=0
    )


def pace(options: DemoOptions) -> Iterator[list[bytes]]:
    """Objects as their time comes, for ever."""
    seed = options.seed
    while True:
        waiting: list[bytes] = []
        for block in blocks(city_life(options, seed, options.rate), 2_000):
            for line in block.splitlines():
                head = msgspec.json.decode(line, type=Head)
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


def read_aloud(console: Console, http: httpx.Client, stopping: threading.Event) -> None:
    """Show a result in words now and then."""
    try:
        with http.stream("GET", "/v1/events?after=latest&objects=1") as stream:
            last_s = 0.0
            for line in stream.iter_lines():
                if stopping.is_set():
                    return
                if line.startswith("data: ") and time.monotonic() - last_s > SAYS_S / 3:
                    told = in_words(msgspec.json.decode(line[6:]))
                    if told:
                        last_s = time.monotonic()
                        console.print(told, soft_wrap=True, markup=False)
    except httpx.HTTPError:
        return


def in_words(told: dict[str, Any]) -> str:
    """A result as a person would say it."""
    result = told["result"]
    name = told["subscription"]
    if result["type"] == "report":
        terms = ", ".join(f"{term} {count}" for term, count in result["terms"][:5])
        return f"  {name}: {terms}" if terms else ""
    texts = [facts["text"] for facts in told.get("objects", {}).values()]
    if not texts:
        return ""
    added = result.get("add", [])
    measure = ""
    if added and "distance_m" in added[0]:
        measure = f", {added[0]['distance_m'] / 1000:.1f} km away"
    elif added:
        measure = f", score {added[0]['score']:.2f}"
    return f"  {name}: “{texts[0]}”{measure}"


def figures(http: httpx.Client) -> str:
    """How it stands, in one line."""
    service = http.get("/v1/status").json()["service"]
    took = service["latency_ms"]["p50"]
    line = f"{service['seq']:,} events, {service['results']:,} results"
    line += f", {service['objects_per_s']:,.0f} texts/s"
    return line + (f", {took / 1000:.2f} s from text to result" if took is not None else "")
