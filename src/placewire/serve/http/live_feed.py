"""Feed the live map: a sample of objects, counters every second, and plan changes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.types import Receive, Scope, Send

from placewire.serve.http.streams import KEEPALIVE, KEEPALIVE_S, send_events
from placewire.serve.intake import JournalLine, now_text
from placewire.status import name_in_force
from placewire.storage.manifest import Manifest

if TYPE_CHECKING:
    from placewire.serve.auth import Caller
    from placewire.serve.gateway import Gateway

TICKS_PER_S = 4
MAX_PER_TICK = 50
KEPT_CHANGES = 20  # plan changes
MAX_WAITING = 64  # messages per page; a slow page misses some


class LiveFeed:
    """Collects what the page shows, and sends it to every open page."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.pages: dict[asyncio.Queue[bytes], tuple[str, Callable[[], None]]] = {}
        self._objects: list[dict[str, Any]] = []
        self._skipped = 0
        self._plan: dict[str, Any] = {}
        self.changes: deque[dict[str, Any]] = deque(maxlen=KEPT_CHANGES)
        self._ticking: asyncio.Task[None] | None = None

    def join(self, caller: str, close: Callable[[], None]) -> asyncio.Queue[bytes]:
        """Register a page under its key's name; `close` ends it."""
        page: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING)
        self.pages[page] = caller, close
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        page.put_nowait(message("status", self.status()))
        return page

    def leave(self, page: asyncio.Queue[bytes]) -> None:
        self.pages.pop(page, None)

    def callers(self) -> set[str]:
        """The keys that have open pages."""
        return {caller for caller, _ in self.pages.values()}

    def end(self, caller: str) -> None:
        """Close the pages of a key."""
        for page, (name, close) in list(self.pages.items()):
            if name == caller:
                close()
                if not page.full():
                    page.put_nowait(b"")  # wakes it up

    def add_objects(self, first_seq: int, lines: Iterable[JournalLine]) -> None:
        """Sample accepted objects; free while no page is open."""
        if not self.pages:
            return
        for seq, line in enumerate(lines, first_seq):
            if len(self._objects) >= MAX_PER_TICK:
                self._skipped += 1
                continue
            event = msgspec.json.decode(line.line)
            self._objects.append(
                {"seq": seq} | {name: event[name] for name in ("id", "lon", "lat", "text", "ts")}
            )

    def on_commit(self, manifest: Manifest) -> None:
        """Note a commit, which may have changed the plan."""
        plan = plan_facts(manifest)
        if self._plan and plan != self._plan:
            used = manifest.leaf_plan
            line = used.sized or used.why or "the plan has changed"
            self.changes.append({"at": now_text(), "line": line})
            self._send(message("plan", plan | {"line": line}))
        self._plan = plan

    async def _tick(self) -> None:
        ticks = 0
        while self.pages:
            await asyncio.sleep(1 / TICKS_PER_S)
            ticks += 1
            if self._objects:
                self._send(message("objects", {"objects": self._objects, "skipped": self._skipped}))
                self._objects, self._skipped = [], 0
            if ticks % TICKS_PER_S == 0:
                self._send(message("status", self.status()))
        self._ticking = None

    def _send(self, text: bytes) -> None:
        for page in self.pages:
            if not page.full():
                page.put_nowait(text)

    def status(self) -> dict[str, Any]:
        """Current counters and the plan."""
        manifest = self.gateway.manifest
        return self.gateway.figures() | {"plan": plan_facts(manifest) if manifest else {}}


class LiveFeedResponse:
    """An ASGI response that sends the feed as server-sent events."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self.gateway = gateway
        self.caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.Event()
        page = self.gateway.live_feed.join(self.caller.name, gone.set)
        try:
            await send_events(page_messages(page, gone), receive, send, gone.set)
        finally:
            self.gateway.live_feed.leave(page)


async def page_messages(page: asyncio.Queue[bytes], gone: asyncio.Event) -> AsyncIterator[bytes]:
    while not gone.is_set():
        try:
            async with asyncio.timeout(KEEPALIVE_S):
                text = await page.get()
        except TimeoutError:
            text = KEEPALIVE
        yield text


def plan_facts(manifest: Manifest) -> dict[str, Any]:
    """Name, version and workers of the leaf plan in use."""
    plan = manifest.leaf_plan
    if not plan.name:
        return {}
    return {"name": name_in_force(plan), "version": plan.version, "workers": plan.workers}


def message(event: str, facts: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return b"event: " + event.encode() + b"\ndata: " + msgspec.json.encode(facts) + b"\n\n"
