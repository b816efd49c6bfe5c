"""What a page shows live: a sample of objects as they come, figures every second, plan changes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.types import Receive, Scope, Send

from placewire.engine.planfacts import name_in_force
from placewire.serve.http.streams import ALIVE, ALIVE_S, HEADERS, STALLED_S, watch
from placewire.serve.intake import Incoming, now_text
from placewire.state.manifest import Manifest

if TYPE_CHECKING:
    from placewire.serve.auth import Caller
    from placewire.serve.gateway import Gateway

TICKS_A_SECOND = 4
MOST_A_TICK = 50
KEPT_CHANGES = 20  # of the plan
MOST_WAITING = 64  # messages for one page; one that does not keep up misses some


class Live:
    """Gathers what is shown and hands it to every page that listens."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.pages: dict[asyncio.Queue[bytes], tuple[str, Callable[[], None]]] = {}
        self._objects: list[dict[str, Any]] = []
        self._skipped = 0
        self._plan: dict[str, Any] = {}
        self.changes: deque[dict[str, Any]] = deque(maxlen=KEPT_CHANGES)
        self._ticking: asyncio.Task[None] | None = None

    def join(self, caller: str, close: Callable[[], None]) -> asyncio.Queue[bytes]:
        """A page's place, by the name of its key and with what ends it."""
        page: asyncio.Queue[bytes] = asyncio.Queue(MOST_WAITING)
        self.pages[page] = caller, close
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        page.put_nowait(message("status", self.status()))
        return page

    def leave(self, page: asyncio.Queue[bytes]) -> None:
        self.pages.pop(page, None)

    def callers(self) -> set[str]:
        """Whose keys pages came with."""
        return {caller for caller, _ in self.pages.values()}

    def end(self, caller: str) -> None:
        """End the pages of a key that is not one any more."""
        for page, (name, close) in list(self.pages.items()):
            if name == caller:
                close()
                if not page.full():
                    page.put_nowait(b"")  # to wake it

    def show(self, first_seq: int, lines: Iterable[Incoming]) -> None:
        """Objects that were accepted; costs nothing while nobody looks."""
        if not self.pages:
            return
        for seq, line in enumerate(lines, first_seq):
            if len(self._objects) >= MOST_A_TICK:
                self._skipped += 1
                continue
            event = msgspec.json.decode(line.line)
            self._objects.append(
                {"seq": seq} | {name: event[name] for name in ("id", "lon", "lat", "text", "ts")}
            )

    def hear(self, manifest: Manifest) -> None:
        """A commit: the plan may be another one now."""
        plan = plan_facts(manifest)
        if self._plan and plan != self._plan:
            line = manifest.plan.get("sized") or manifest.plan.get("why") or "the plan has changed"
            self.changes.append({"at": now_text(), "line": line})
            self._send(message("plan", plan | {"line": line}))
        self._plan = plan

    async def _tick(self) -> None:
        ticks = 0
        while self.pages:
            await asyncio.sleep(1 / TICKS_A_SECOND)
            ticks += 1
            if self._objects:
                self._send(message("objects", {"objects": self._objects, "skipped": self._skipped}))
                self._objects, self._skipped = [], 0
            if ticks % TICKS_A_SECOND == 0:
                self._send(message("status", self.status()))
        self._ticking = None

    def _send(self, text: bytes) -> None:
        for page in self.pages:
            if not page.full():
                page.put_nowait(text)

    def status(self) -> dict[str, Any]:
        """The figures of the moment."""
        manifest = self.gateway.manifest
        return self.gateway.figures() | {"plan": plan_facts(manifest) if manifest else {}}


class LiveStream:
    """What a page shows, as server-sent events."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self.gateway = gateway
        self.caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        gone = asyncio.Event()
        watcher = asyncio.create_task(watch(receive, gone.set))
        page = self.gateway.live.join(self.caller.name, gone.set)
        try:
            while not gone.is_set():
                try:
                    async with asyncio.timeout(ALIVE_S):
                        text = await page.get()
                except TimeoutError:
                    text = ALIVE
                async with asyncio.timeout(STALLED_S):
                    await send({"type": "http.response.body", "body": text, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (TimeoutError, OSError):
            pass
        finally:
            self.gateway.live.leave(page)
            watcher.cancel()


def plan_facts(manifest: Manifest) -> dict[str, Any]:
    """Which boolean plan is in force."""
    plan = manifest.plan
    if "name" not in plan:
        return {}
    return {"name": name_in_force(plan), "version": plan["version"], "workers": plan["workers"]}


def message(event: str, facts: dict[str, Any]) -> bytes:
    """A message of server-sent events."""
    return b"event: " + event.encode() + b"\ndata: " + msgspec.json.encode(facts) + b"\n\n"
