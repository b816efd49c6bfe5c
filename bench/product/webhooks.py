"""Throughput and latency of webhook deliveries, to one receiver and to many.

First what has waited before the webhooks were made, then what comes while it is published. The
receiver is a process of its own that replies at once; everything shares a machine.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import urllib.request
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.clock import own_seconds
from bench.figures import Figures, Table
from bench.harness import Setup
from bench.product.service import (
    PORT,
    TAKES_S,
    find_gateway,
    wait_until_committed,
    wait_until_well,
)

RECEIVER = 17_879
REPLY = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"
HOOKS = (1, 50)
LINES = 100  # in a post
EVERY_S = 0.1  # between two posts


class Body(NamedTuple):
    """One body that was received."""

    at_s: float
    subscription: str
    numbers: list[int]
    objects: list[str]


def receive(ready: Event, done: Event, told: Any) -> None:
    """Reply to everything, and tell in the end what came."""
    bodies: list[Body] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        body = json.loads(await reader.readexactly(size))
        results = body["results"]
        numbers = [one["number"] for one in results]
        names = [one["result"]["object"] for one in results]
        bodies.append(Body(time.time(), body["subscription"], numbers, names))
        writer.write(REPLY)
        await writer.drain()
        writer.close()

    async def serve() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", RECEIVER, backlog=1_024):
            ready.set()
            while not done.is_set():
                await asyncio.sleep(0.05)

    asyncio.run(serve())
    told.put(bodies)


def call(method: str, path: str, body: bytes, kind: str = "application/json") -> Any:
    address = f"http://127.0.0.1:{PORT}{path}"
    request = urllib.request.Request(address, body, {"content-type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())


def publish(names: list[str], hooks: int) -> None:
    """One post; each object is one subscription's."""
    lines = [
        json.dumps({"id": name, "lon": 1.0, "lat": 2.0, "text": f"word{number % hooks}"})
        for number, name in enumerate(names)
    ]
    call("POST", "/v1/objects", "\n".join(lines).encode(), "application/x-ndjson")


def wait_until_delivered() -> None:
    end = time.monotonic() + 10 * TAKES_S
    while time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=10) as reply:
            if b"\nplacewire_webhook_pending 0\n" in reply.read():
                return
        time.sleep(0.05)
    raise RuntimeError("not everything was delivered in time")


def measure(root: Path, hooks: int, seconds: float, waiting: int) -> list[tuple[object, ...]]:
    """One service with so many webhooks."""
    root.mkdir(parents=True)
    command = [sys.executable, "-m", "placewire.cli.main", "serve", "--state", str(root / "state")]
    more = ["--port", str(PORT), "--runner", "local", "--allow-private-webhooks"]
    spawning = get_context("spawn")
    ready, done, told = spawning.Event(), spawning.Event(), spawning.Queue()
    receiver = spawning.Process(target=receive, args=(ready, done, told))
    with open(root / "said", "wb") as said:
        service = subprocess.Popen([*command, *more], stdout=said, stderr=said)
    try:
        receiver.start()
        wait_until_well()
        ready.wait(TAKES_S)
        for number in range(hooks):
            wish = {"kind": "boolean", "where": f"word{number}"}
            call("PUT", f"/v1/subscriptions/s{number}", json.dumps(wish).encode())
        for first in range(0, waiting, 5_000):
            publish([f"w{number}" for number in range(first, first + 5_000)], hooks)
        wait_until_committed()
        gateway = find_gateway(service.pid)
        begun_s, busy_s = time.time(), own_seconds(gateway)
        hook = json.dumps({"webhook": {"url": f"http://127.0.0.1:{RECEIVER}/"}}).encode()
        for number in range(hooks):
            call("PUT", f"/v1/subscriptions/s{number}/delivery", hook)
        wait_until_delivered()
        middle_s, middle_busy_s = time.time(), own_seconds(gateway)
        accepted: dict[str, float] = {}
        while time.time() < middle_s + seconds:
            names = [f"n{number}" for number in range(len(accepted), len(accepted) + LINES)]
            publish(names, hooks)
            accepted.update(dict.fromkeys(names, time.time()))
            due_s = middle_s + len(accepted) / LINES * EVERY_S
            time.sleep(max(0.0, due_s - time.time()))
        wait_until_committed()
        wait_until_delivered()
        end_busy_s = own_seconds(gateway)
        done.set()
        bodies: list[Body] = told.get(timeout=TAKES_S)
    finally:
        done.set()
        receiver.join(TAKES_S)
        service.send_signal(signal.SIGTERM)
        service.wait(TAKES_S)
    check(bodies, hooks, waiting + len(accepted))
    before = [body for body in bodies if body.objects[0].startswith("w")]
    after = [body for body in bodies if not body.objects[0].startswith("w")]
    waits = [body.at_s - accepted[name] for body in after for name in body.objects]
    p50, p99 = np.quantile(waits, [0.5, 0.99])
    took_s = max(body.at_s for body in before) - begun_s
    later_s = max(body.at_s for body in after) - middle_s
    cores = (middle_busy_s - busy_s) / took_s
    later_cores = (end_busy_s - middle_busy_s) / later_s
    return [
        (hooks, "what has waited", waiting / took_s, len(before) / took_s, "", "", cores),
        (hooks, "as they come", len(waits) / later_s, len(after) / later_s, p50, p99, later_cores),
    ]


def check(bodies: list[Body], hooks: int, results: int) -> None:
    """Every result came, once and in order."""
    seen: dict[str, list[int]] = {}
    for body in bodies:
        seen.setdefault(body.subscription, []).extend(body.numbers)
    whole = all(numbers == [*range(1, len(numbers) + 1)] for numbers in seen.values())
    total = sum(map(len, seen.values()))
    if not whole or len(seen) != hooks or total != results:
        raise RuntimeError(f"{results} results were due, {total} came, in order: {whole}")


def measure_webhooks(setup: Setup, seconds: float = 20.0, waiting: int = 50_000) -> Figures:
    """Results and bodies a second that reach receivers, and how long they take.

    `waiting` results are there before the webhooks are made.
    """
    rows = [
        row
        for hooks in HOOKS
        for row in measure(setup.folder / f"hooks{hooks}", hooks, seconds, waiting)
    ]
    header = ("webhooks", "results", "results/s", "bodies/s", "p50, s", "p99, s", "gateway, cores")
    yield Table("webhooks", header, rows)
