"""The server under load: many open streams, thousands of objects and results a second.

Every object lies in the box of one subscription, and every subscription has one stream that
follows it. Those who listen are processes of their own, and so is the service; all share a machine.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.clock import own_seconds, say
from bench.figures import Figures, Table
from bench.harness import Setup

PORT = 17_878
POSTS_A_SECOND = 50
OBJECTS_A_POST = 100
LISTENING = 2  # processes
LINES = 4  # connections that publish
WARM_S = 10.0
TAKES_S = 60.0  # for the last results to come
STARTS_S = 300.0


class ServiceLoad(NamedTuple):
    """How much of everything."""

    streams: int
    seconds: float
    posts_a_second: int = POSTS_A_SECOND


class ServiceFigures(NamedTuple):
    """What came of it."""

    accepted_a_second: float
    delivered_a_second: float
    lost: int
    twice: int
    waits_s: np.ndarray  # from acceptance to the client's socket, after warming up
    ledger_s: tuple[float, float]  # median and p99 from acceptance to the ledger, as it says itself
    gateway_mb: float
    gateway_cores: float


def measure_service(setup: Setup, streams: int = 2_000, seconds: float = 60.0) -> Figures:
    """Accepted and delivered a second, from acceptance to socket, losses, memory."""
    load = ServiceLoad(streams, seconds)
    rows = []
    for runner in ("local", "spark"):
        figures = measure(setup.folder / runner, runner, load)
        say(f"{runner}: {figures._replace(waits_s=np.empty(0))}")
        p50, p99 = np.quantile(figures.waits_s, [0.5, 0.99])
        facts = (
            figures.accepted_a_second, figures.delivered_a_second, p50, p99, *figures.ledger_s,
            figures.lost, figures.twice, figures.gateway_mb, figures.gateway_cores,
        )  # fmt: skip
        rows.append((runner, load.streams, *facts))
    header = (
        "runner", "streams", "accepted/s", "delivered/s", "p50, s", "p99, s", "ledger p50, s",
        "ledger p99, s", "lost", "twice", "gateway, MB", "gateway, cores",
    )  # fmt: skip
    yield Table("service", header, rows)


def measure(root: Path, runner: str, load: ServiceLoad) -> ServiceFigures:
    """One service, one load."""
    root.mkdir(parents=True)
    command = [sys.executable, "-m", "placewire.cli.main", "serve", "--state", str(root / "state")]
    with open(root / "said", "wb") as said:
        service = subprocess.Popen(
            [*command, "--port", str(PORT), "--runner", runner], stdout=said, stderr=said
        )
    spawning = get_context("spawn")
    shares = np.array_split(np.arange(load.streams), LISTENING)
    heard = [spawning.Queue() for _ in shares]
    ready, done = spawning.Semaphore(0), spawning.Event()
    listeners = []
    try:
        wait_until_well()
        subscribe(load.streams)
        wait_until_committed()  # Spark takes its time to start
        for share, told in zip(shares, heard, strict=True):
            names = share.tolist()
            listener = spawning.Process(target=listen, args=(PORT, names, ready, done, told))
            listener.start()
            listeners.append(listener)
        for _ in listeners:
            if not ready.acquire(timeout=STARTS_S):
                raise RuntimeError("not all streams were opened in time")
        gateway = find_gateway(service.pid)
        before = own_seconds(gateway)
        accepted, took_s = asyncio.run(publish(load))
        cores = (own_seconds(gateway) - before) / took_s
        own = ask("/v1/status")["service"]["latency_ms"]
        wait_until_committed()
        time.sleep(2.0)
        megabytes = resident_mb(gateway)
        done.set()
        found = [told.get(timeout=TAKES_S) for told in heard]
    finally:
        done.set()
        for listener in listeners:
            listener.join(TAKES_S)
        service.send_signal(signal.SIGTERM)
        service.wait(TAKES_S)
    ledger_s = ((own["p50"] or 0.0) / 1e3, (own["p99"] or 0.0) / 1e3)
    return weigh(accepted, took_s, found, ledger_s)._replace(
        gateway_mb=megabytes, gateway_cores=cores
    )


def weigh(
    accepted: dict[int, float], took_s: float, found: list[Heard], ledger_s: tuple[float, float]
) -> ServiceFigures:
    """Figures of what was accepted and what was heard of it."""
    post = np.concatenate([heard.post for heard in found])
    place = np.concatenate([heard.place for heard in found])
    at_s = np.concatenate([heard.at_s for heard in found])
    times = np.bincount(post * OBJECTS_A_POST + place, minlength=1)
    expected = (
        np.array(sorted(accepted))[:, None] * OBJECTS_A_POST + np.arange(OBJECTS_A_POST)
    ).ravel()
    counts = np.zeros(max(times.size, expected.max() + 1), np.int64)
    counts[: times.size] = times
    accepted_s = np.full(max(accepted) + 1, np.nan)
    accepted_s[list(accepted)] = list(accepted.values())
    begun_s = min(accepted.values())
    known = np.isin(post, list(accepted))
    warm = known.copy()
    warm[known] = accepted_s[post[known]] > begun_s + WARM_S
    last_s = max(float(at_s.max()), begun_s + took_s)
    return ServiceFigures(
        len(accepted) * OBJECTS_A_POST / took_s,
        post.size / (last_s - begun_s),
        int((counts[expected] == 0).sum()),
        int((counts > 1).sum()),
        at_s[warm] - accepted_s[post[warm]],
        ledger_s,
        0.0,
        0.0,
    )


# What is sent.


def box_of(number: int, streams: int) -> tuple[float, float]:
    """The south-western corner of a subscription's own box, of 0.01 degrees."""
    columns = int(np.ceil(np.sqrt(streams)))
    return -100.0 + 0.01 * (number % columns), 30.0 + 0.01 * (number // columns)


def subscribe(streams: int) -> None:
    """All subscriptions, in bodies of lines."""
    for some in np.array_split(np.arange(streams), max(1, streams // 1_000)):
        lines = []
        for number in some.tolist():
            west, south = box_of(number, streams)
            box = [west, south, west + 0.009, south + 0.009]
            lines.append(
                json.dumps({"id": f"s{number}", "kind": "boolean", "region": {"box": box},
                            "where": "coffee"})
            )  # fmt: skip
        request = urllib.request.Request(
            f"http://127.0.0.1:{PORT}/v1/subscriptions",
            "\n".join(lines).encode(),
            {"content-type": "application/x-ndjson"},
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            told = json.loads(reply.read())
        if told["rejected"]:
            raise RuntimeError(f"subscriptions were refused: {told['errors'][:1]}")


def body_of(post: int, streams: int, random: np.random.Generator) -> bytes:
    """The objects of one post, each in the box of some subscription."""
    lines = []
    for place, number in enumerate(random.integers(0, streams, OBJECTS_A_POST).tolist()):
        west, south = box_of(number, streams)
        lines.append(
            b'{"type":"object","id":"b%d-%d","ts":"2026-03-01T12:00:00Z","lon":%.4f,"lat":%.4f,'
            b'"text":"free coffee at the corner, while it lasts"}'
            % (post, place, west + 0.004, south + 0.004)
        )
    return b"\n".join(lines)


async def publish(load: ServiceLoad) -> tuple[dict[int, float], float]:
    """Send posts by the clock; gives when each was accepted, and how long all took."""
    accepted: dict[int, float] = {}
    posts = int(load.seconds * load.posts_a_second)
    random = np.random.default_rng(7)
    bodies = [body_of(post, load.streams, random) for post in range(posts)]
    begun_s = time.monotonic() + 0.5

    async def send_some(first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        for post in range(first, posts, LINES):
            await asyncio.sleep(begun_s + post / load.posts_a_second - time.monotonic())
            body = bodies[post]
            writer.write(
                b"POST /v1/objects HTTP/1.1\r\nhost: localhost\r\n"
                b"content-type: application/x-ndjson\r\ncontent-length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            told = json.loads(await reader.readexactly(length))
            if told.get("accepted") != OBJECTS_A_POST:
                raise RuntimeError(f"a post was refused: {told}")
            accepted[post] = time.monotonic()
        writer.close()

    await asyncio.gather(*(send_some(first) for first in range(LINES)))
    return accepted, time.monotonic() - begun_s


# The service.


def ask(path: str) -> dict[str, Any]:
    address = f"http://127.0.0.1:{PORT}{path}"
    with suppress(OSError, ValueError), urllib.request.urlopen(address, timeout=10) as reply:
        return dict(json.loads(reply.read()))
    return {}


def wait_until_well() -> None:
    end = time.monotonic() + STARTS_S
    while ask("/health").get("pipeline") != "running":
        if time.monotonic() > end:
            raise RuntimeError("the service did not start in time")
        time.sleep(0.2)


def wait_until_committed() -> None:
    end = time.monotonic() + STARTS_S
    while ask("/health").get("lag_events") != 0:
        if time.monotonic() > end:
            raise RuntimeError("the pipeline did not catch up in time")
        time.sleep(0.1)


def find_gateway(supervisor: int) -> int:
    for pid in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split():
        if b"gateway" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return int(pid)
    raise RuntimeError("there is no gateway")


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


AT_ONCE = 200  # streams that are being opened
OBJECT = re.compile(rb'"object":"b([0-9]+)-([0-9]+)"')


class Heard(NamedTuple):
    """Results as they came: which post's, which of its objects, and when."""

    post: np.ndarray
    place: np.ndarray
    at_s: np.ndarray


class EventStream(asyncio.Protocol):
    """One stream; only whole lines are looked at."""

    def __init__(self, name: str, heard: list[tuple[bytes, bytes, float]]) -> None:
        self.name = name
        self.heard = heard
        self.rest = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        path = f"/v1/subscriptions/{self.name}/events"
        transport.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        if not self.opened.done() and data.startswith(b"HTTP/1.1 200"):
            self.opened.set_result(None)
        whole, _, self.rest = (self.rest + data).rpartition(b"\n")
        for post, place in OBJECT.findall(whole):
            self.heard.append((post, place, now))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(error or OSError("closed before it began"))


def listen(port: int, numbers: list[int], ready: Any, done: Any, told: Any) -> None:
    """Open a stream for each number's subscription, and tell what came when all is done."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    heard: list[tuple[bytes, bytes, float]] = []

    async def hear() -> None:
        loop = asyncio.get_running_loop()
        room = asyncio.Semaphore(AT_ONCE)

        async def open_one(number: int) -> None:
            async with room:
                _, stream = await loop.create_connection(
                    lambda: EventStream(f"s{number}", heard), "127.0.0.1", port
                )
                await stream.opened

        await asyncio.gather(*(open_one(number) for number in numbers))
        ready.release()
        while not done.is_set():
            await asyncio.sleep(0.2)

    try:
        import uvloop

        uvloop.run(hear())
    except ImportError:
        asyncio.run(hear())
    posts, places, times = zip(*heard, strict=True) if heard else ((), (), ())
    told.put(
        Heard(
            np.array([int(post) for post in posts], np.int64),
            np.array([int(place) for place in places], np.int64),
            np.array(times, np.float64),
        )
    )
