"""A stand-in for the service, for the page alone: its interface over the oracle, in one process.

`python tests/page_server.py --port 7878 --rate 40` plays city life to look at the page by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import oracle

PAGE = Path(__file__).parents[1] / "src/placewire/serve/page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
LOOK_S = 0.03  # how often a stream looks for news
SPAN_S = 3  # the span that rates and latencies are of
LEAVES = {
    "kdt": [(-180, -90, -30, 20), (-180, 20, -30, 90), (-30, -90, 60, 35), (-30, 35, 60, 90),
            (60, -90, 180, 25), (60, 25, 180, 90)],
    "shared": [(-180, -90, 180, 90)],
}  # fmt: skip


def now_text() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def refusal(status: int, error: str) -> JSONResponse:
    return JSONResponse({"error": error}, status)


class StrictHeaders:
    """The headers that the page has to live with, on every reply."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    (b"content-security-policy", POLICY.encode()),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                ]
            await send(message)

        await self.app(scope, receive, send_more)


class StandIn:
    """The service as the page sees it. What it took survives `stop` and `start`, as a journal."""

    def __init__(self, *, required_key: str | None = None) -> None:
        self.required_key = required_key
        self.port = 0
        self.lock = threading.Lock()
        self.replay = oracle.Replay(oracle.read_settings(None), False)
        self.seq = 0
        self.objects: list[dict[str, Any]] = []
        self.details: dict[str, dict[str, Any]] = {}
        self.wishes: dict[str, dict[str, Any]] = {}
        self.results: list[dict[str, Any]] = []  # position is the number in the list, from 1
        self.plan = ("kdt", 1)
        self.plan_changes: list[dict[str, Any]] = []
        self.resumed_from: list[int] = []
        self.illness: str | None = None
        self.streams = 0
        self.coming = 0.0  # when the event that is being taken came
        self.came: list[float] = []  # beside the results: when their events came
        self.taken: deque[float] = deque(maxlen=4000)  # when objects came
        self.given: deque[float] = deque(maxlen=4000)  # when results were made
        self.deliveries: deque[tuple[float, float]] = deque(maxlen=4000)  # when, how long it took
        self.server: uvicorn.Server | None = None
        self.thread: threading.Thread | None = None
        self.stopping = threading.Event()

    # What a test does to it

    def start(self) -> StandIn:
        self.stopping.clear()
        config = uvicorn.Config(
            self.app(),
            host="127.0.0.1",
            port=self.port,
            log_level="error",
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        return self

    def stop(self) -> None:
        assert self.server is not None
        assert self.thread is not None
        self.stopping.set()
        self.server.should_exit = True
        self.thread.join()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def publish(self, id: str, lon: float, lat: float, text: str) -> int:
        thing = {"id": id, "lon": lon, "lat": lat, "text": text, "ts": now_text()}
        with self.lock:
            self.taken.append(time.monotonic())
            seq = self.take({"type": "object", **thing})
            self.objects.append({"seq": seq, **thing})
            return seq

    def change_plan(self, name: str, line: str) -> None:
        with self.lock:
            self.plan = (name, self.plan[1] + 1)
            self.plan_changes.append({"at": now_text(), "line": line})

    # The log

    def take(self, event: dict[str, Any]) -> int:
        """Append one event and keep what it gave; the lock is held."""
        self.coming = time.monotonic()
        seq = self.seq
        line = json.dumps(event).encode()
        read = oracle.read_event(seq, line, self.replay.now, self.replay.settings)
        if event["type"] == "object":
            self.details[event["id"]] = {
                "seq": seq, **{name: event[name] for name in ("lon", "lat", "text")}
            }  # fmt: skip
        self.seq += 1
        self.replay.apply(seq, read)
        for _, result in self.replay.results:
            if result["type"] != "answer":
                self.keep(result)
        self.answers = [result for _, result in self.replay.results if result["type"] == "answer"]
        self.replay.results.clear()
        return seq

    def keep(self, result: dict[str, Any]) -> None:
        owner = result["subscription"]
        self.given.append(time.monotonic())
        self.came.append(self.coming)
        number = 1 + sum(1 for kept in self.results if kept["subscription"] == owner)
        names = [result.get("object"), *(place["object"] for place in result.get("add", []))]
        self.results.append({
            "number": number, "id": f"{result['seq']}:{result['type']}:{owner}",
            "subscription": owner, "result": result,
            "objects": {name: self.details[name] for name in names if name in self.details},
        })  # fmt: skip

    # Its interface

    def app(self) -> Starlette:
        def guarded(answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
            async def check(request: Request) -> Response:
                given = request.headers.get("authorization", "")
                if self.required_key and given != f"Bearer {self.required_key}":
                    return refusal(
                        401, "a key is needed: Authorization: Bearer KEY, got none that is known"
                    )
                try:
                    return await answer(request)
                except oracle.InvalidEvent as error:
                    return refusal(422, str(error))

            return check

        routes = [
            ("GET", "/health", self.health),
            ("GET", "/v1/live", self.live), ("GET", "/v1/events", self.events),
            ("POST", "/v1/objects", self.post_object),
            ("GET", "/v1/subscriptions", self.list_subscriptions),
            ("POST", "/v1/subscriptions", self.subscribe),
            ("GET", "/v1/subscriptions/{id}", self.get_subscription),
            ("DELETE", "/v1/subscriptions/{id}", self.unsubscribe),
            ("GET", "/v1/subscriptions/{id}/standing", self.standing),
            ("GET", "/v1/subscriptions/{id}/events", self.events),
            ("POST", "/v1/query", self.query), ("GET", "/v1/plan", self.get_plan),
        ]  # fmt: skip
        return Starlette(
            routes=[
                Route("/", lambda _: FileResponse(PAGE / "index.html")),
                *(
                    Route(path, guarded(answer), methods=[method])
                    for method, path, answer in routes
                ),
                Mount("/static", StaticFiles(directory=PAGE)),
            ],
            middleware=[Middleware(StrictHeaders)],
        )

    async def health(self, request: Request) -> Response:
        well = {"seq": self.seq, "committed_seq": self.seq, "lag_events": 0, "version": "0"}
        if self.illness is None:
            return JSONResponse({"status": "ok", "pipeline": "running", **well})
        return JSONResponse({"status": self.illness, "pipeline": "dead", **well}, 503)

    async def post_object(self, request: Request) -> Response:
        body = await request.json()
        return JSONResponse(
            {"seq": self.publish(body["id"], body["lon"], body["lat"], body["text"])}, 202
        )

    def listed(self, id: str) -> dict[str, Any]:
        wish = self.wishes[id]
        mine = sum(1 for kept in self.results if kept["subscription"] == id)
        return {
            "id": id,
            "kind": wish["kind"],
            "seq": wish["seq"],
            "since": wish["ts"],
            "results": mine,
            "status": "live" if id in self.replay.live else "ended",
            "delivery": None,
            "subscription": {
                name: value
                for name, value in wish.items()
                if name not in ("seq", "ts", "id", "type")
            },
        }

    async def list_subscriptions(self, request: Request) -> Response:
        limit = int(request.query_params.get("limit", 100))
        ids = sorted(id for id in self.wishes if id > request.query_params.get("after", ""))
        more = ids[limit - 1] if len(ids) > limit else None
        return JSONResponse(
            {"subscriptions": [self.listed(id) for id in ids[:limit]], "next": more}
        )

    async def get_subscription(self, request: Request) -> Response:
        id = request.path_params["id"]
        return (
            JSONResponse(self.listed(id))
            if id in self.wishes
            else refusal(404, f"no subscription {id!r}")
        )

    async def subscribe(self, request: Request) -> Response:
        body = await request.json()
        with self.lock:
            event = {"type": "subscribe", "ts": now_text(), "id": f"s{self.seq}", **body}
            replaced = event["id"] in self.replay.live
            seq = self.take(event)
            self.wishes[event["id"]] = {**event, "seq": seq}
        return JSONResponse({"id": event["id"], "seq": seq, "replaced": replaced}, 201)

    async def unsubscribe(self, request: Request) -> Response:
        id = request.path_params["id"]
        if id not in self.replay.live:
            return refusal(404, f"no live subscription {id!r}")
        with self.lock:
            seq = self.take({"type": "unsubscribe", "id": id, "ts": now_text()})
        return JSONResponse({"id": id, "seq": seq})

    async def standing(self, request: Request) -> Response:
        ask = self.replay.live.get(request.path_params["id"])
        if ask is None:
            return refusal(404, "no live subscription")
        if ask.kind == "trending":
            reports = [kept["result"] for kept in self.results if kept["subscription"] == ask.id]
            last = reports[-1] if reports else {"at": None, "terms": []}
            return JSONResponse({"at": last["at"], "terms": last["terms"]})
        sign, measure = (1, "distance_m") if ask.kind == "nearest" else (-1, "score")
        ranked = sorted(ask.candidates)[: ask.k]
        return JSONResponse(
            {"objects": [{"object": one.id, measure: sign * value} for value, _, one in ranked]}
        )

    async def query(self, request: Request) -> Response:
        body = await request.json()
        with self.lock:
            self.take({"type": "query", "id": "q", "ts": now_text(), **body})
            answer = self.answers[0]
        named = [place["object"] for place in answer.get("objects", [])]
        return JSONResponse({**answer, "details": {name: self.details[name] for name in named}})

    async def get_plan(self, request: Request) -> Response:
        name, version = self.plan
        boxes = LEAVES[name]
        counts = [
            1 + sum(w <= o["lon"] < e and s <= o["lat"] < n for o in self.objects[-4000:])
            for w, s, e, n in boxes
        ]
        leaves = [
            {
                "leaf": row,
                "worker": (row + version) % 4 if len(boxes) > 1 else 0,
                "box": list(box),
                "load": count / sum(counts),
                "terms": False,
            }
            for row, (box, count) in enumerate(zip(boxes, counts, strict=True))
        ]
        return JSONResponse(
            {
                "version": version,
                "name": name,
                "workers": 4,
                "leaves": leaves,
                "events": self.plan_changes,
            }
        )

    # Its streams

    def stream(self, messages: AsyncIterator[str]) -> Response:
        async def counted() -> AsyncIterator[str]:
            self.streams += 1
            try:
                async for message in messages:
                    yield message
            finally:
                self.streams -= 1

        return StreamingResponse(
            counted(), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def live(self, request: Request) -> Response:
        async def messages() -> AsyncIterator[str]:
            told, plans, due = len(self.objects), len(self.plan_changes), 0.0
            while not self.stopping.is_set():
                fresh = self.objects[told:]
                told += len(fresh)
                if fresh:
                    yield say(
                        "objects", {"objects": fresh[:200], "skipped": max(0, len(fresh) - 200)}
                    )
                for change in self.plan_changes[plans:]:
                    yield say(
                        "plan",
                        {"version": self.plan[1], "name": self.plan[0], "line": change["line"]},
                    )
                plans = len(self.plan_changes)
                if time.monotonic() >= due:
                    due = time.monotonic() + 1
                    yield say("status", self.status())
                await asyncio.sleep(LOOK_S)

        return self.stream(messages())

    def status(self) -> dict[str, Any]:
        """What was measured in the last seconds; the plan and its workers alone are a script."""
        since = time.monotonic() - SPAN_S
        waits = sorted(wait for at, wait in list(self.deliveries) if at > since)
        return {
            "now": now_text(),
            "seq": self.seq,
            "committed_seq": self.seq,  # events are worked through as they are taken
            "lag_events": 0,
            "objects_per_s": round(sum(at > since for at in list(self.taken)) / SPAN_S, 1),
            "results_per_s": round(sum(at > since for at in list(self.given)) / SPAN_S, 1),
            "latency_ms": {
                name: round(waits[int(share * (len(waits) - 1))] * 1000, 1) if waits else None
                for name, share in (("p50", 0.5), ("p99", 0.99))
            },
            "streams": self.streams,
            "subscriptions": len(self.replay.live),
            "workers": 4,
            "plan": {"name": self.plan[0], "version": self.plan[1]},
        }

    async def events(self, request: Request) -> Response:
        after = request.headers.get("last-event-id") or request.query_params.get("after", "0")
        position = len(self.results) if after == "latest" else int(after)
        if "last-event-id" in request.headers:
            self.resumed_from.append(position)

        owner = request.path_params.get("id")

        async def messages() -> AsyncIterator[str]:
            """Of one subscription by its own numbers, of all by one line of positions."""
            told = 0 if owner else position
            old = len(self.results)  # what was made before nobody waited for
            yield f"id: {position}\n: begins\n\n"
            while not self.stopping.is_set():
                for kept in self.results[told:]:
                    told += 1
                    number = kept["number"] if owner else told
                    if owner in (None, kept["subscription"]) and number > position:
                        if told > old:
                            wait = time.monotonic() - self.came[told - 1]
                            self.deliveries.append((time.monotonic(), wait))
                        yield f"id: {number}\n" + say(kept["result"]["type"], kept)
                await asyncio.sleep(LOOK_S)

        return self.stream(messages())


def say(event: str, data: Any) -> str:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


@contextlib.contextmanager
def serving(stand_in: StandIn) -> Iterator[StandIn]:
    stand_in.start()
    try:
        yield stand_in
    finally:
        stand_in.stop()


def play_city(stand_in: StandIn, rate: float) -> None:
    """Publish city life, over and over, until the process ends."""
    from placewire.city import CityLife, blocks

    while True:
        for block in blocks(CityLife(objects=50_000, subscriptions=0, queries=0)):
            for line in bytes(block).splitlines():
                with contextlib.suppress(ValueError, KeyError, oracle.InvalidEvent):
                    one = json.loads(line)
                    stand_in.publish(one["id"], one["lon"], one["lat"], one["text"])
                    time.sleep(1 / rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7878)
    parser.add_argument("--rate", type=float, default=40, help="objects a second")
    parser.add_argument("--key", help="a key that is asked for")
    given = parser.parse_args()
    stand_in = StandIn(required_key=given.key)
    stand_in.port = given.port
    with serving(stand_in):
        print(f"The page is at {stand_in.address}")
        play_city(stand_in, given.rate)


if __name__ == "__main__":
    main()
