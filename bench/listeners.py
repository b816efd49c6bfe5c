"""Those who listen to the service, for its benchmark: thousands of streams in one process."""

from __future__ import annotations

import asyncio
import re
import resource
import time
from typing import Any, NamedTuple

import numpy as np

AT_ONCE = 200  # streams that are being opened
OBJECT = re.compile(rb'"object":"b([0-9]+)-([0-9]+)"')


class Heard(NamedTuple):
    """Results as they came: which post's, which of its objects, and when."""

    post: np.ndarray
    place: np.ndarray
    at_s: np.ndarray


class Stream(asyncio.Protocol):
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
                    lambda: Stream(f"s{number}", heard), "127.0.0.1", port
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
