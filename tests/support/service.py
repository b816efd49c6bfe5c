"""A service in threads of this process: a gateway on a free port, and a pipeline."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from placewire import run
from placewire.model.settings import Settings
from placewire.serve.gateway import Gateway, GatewayOptions
from placewire.serve.http.app import make_app
from placewire.serve.http.connection import configure
from placewire.serve.pipeline import PipelineOptions, run_pipeline
from placewire.storage.journal import read_entries
from ports import free_port
from waits import WAIT_S, until


class Service:
    """The service of a state directory. Start and stop gateway and pipeline separately."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.root = root
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        settings = options.pop("settings", Settings())
        self.options = GatewayOptions(root, settings, port=self.port, **options)
        self.http = httpx.Client(base_url=self.url, timeout=WAIT_S)
        self.gateway: Gateway | None = None
        self._server: uvicorn.Server | None = None
        self._serving: threading.Thread | None = None
        self._stopping = threading.Event()
        self._pipeline: threading.Thread | None = None
        self.problems: list[BaseException] = []

    def start_gateway(self) -> None:
        ready = threading.Event()

        async def serve() -> None:
            self.gateway = Gateway(self.options)
            gateway = self.gateway
            app = make_app(lambda: gateway)
            config = configure(
                app, self.options.connection_limits, host="127.0.0.1", port=self.port
            )
            config.timeout_graceful_shutdown = 1
            self._server = uvicorn.Server(config)
            ready.set()
            await self._server.serve()

        def run() -> None:
            try:
                asyncio.run(serve())
            except BaseException as error:
                self.problems.append(error)
                ready.set()

        self._serving = threading.Thread(target=run, daemon=True)
        self._serving.start()
        ready.wait(WAIT_S)
        self.until(lambda: self.problems or (self._server and self._server.started))
        if self.problems:
            raise self.problems[0]

    def stop_gateway(self) -> None:
        assert self._server is not None
        assert self._serving is not None
        self._server.should_exit = True
        self._serving.join(WAIT_S)

    def start_pipeline(self, **options: Any) -> None:
        self._stopping = threading.Event()
        given = PipelineOptions(self.root, self.options.settings, "local", **options)

        def run() -> None:
            try:
                run_pipeline(given, self._stopping)
            except BaseException as error:
                self.problems.append(error)

        self._pipeline = threading.Thread(target=run, daemon=True)
        self._pipeline.start()

    def stop_pipeline(self) -> None:
        self._stopping.set()
        if self._pipeline is not None:
            self._pipeline.join(WAIT_S)

    def until(self, holds: Callable[[], Any]) -> Any:
        """Poll a condition until its result is true and return it."""
        return until(holds, "the service has done it")

    def caught_up(self) -> None:
        """Wait until everything accepted is committed and in the ledger."""

        def holds() -> bool:
            health = self.http.get("/health").json()
            assert self.gateway is not None
            return bool(health["lag_events"] == 0 and not self.problems)

        self.until(holds)

    def subscribe(self, name: str, **subscription: Any) -> dict[str, Any]:
        reply = self.http.put(f"/v1/subscriptions/{name}", json=subscription)
        assert reply.status_code in (200, 201), reply.text
        return dict(reply.json())

    def publish(self, *objects: dict[str, Any]) -> dict[str, Any]:
        lines = "\n".join(json.dumps(one) for one in objects)
        headers = {"content-type": "application/x-ndjson"}
        reply = self.http.post("/v1/objects", content=lines, headers=headers)
        assert reply.status_code == 202, reply.text
        return dict(reply.json())

    def results(self, name: str, after: int = 0) -> list[dict[str, Any]]:
        reply = self.http.get(f"/v1/subscriptions/{name}/results?after={after}&limit=1000")
        assert reply.status_code == 200, reply.text
        return list(reply.json()["results"])


@contextmanager
def serving(root: Path, pipeline: bool = True, **options: Any) -> Iterator[Service]:
    """Run a service; stop it afterwards and raise what went wrong in its threads."""
    service = Service(root, **options)
    service.start_gateway()
    if pipeline:
        service.start_pipeline()
    try:
        yield service
    finally:
        service.stop_pipeline()
        service.stop_gateway()
        service.http.close()
    if service.problems:
        raise service.problems[0]


class Events:
    """Read the server-sent events of a path one by one."""

    def __init__(self, service: Service, path: str, **headers: str) -> None:
        self._client = httpx.Client(base_url=service.url, timeout=WAIT_S)
        self._stream = self._client.stream("GET", path, headers=headers)
        self.response = self._stream.__enter__()
        self._lines = self.response.iter_lines()

    def next(self) -> dict[str, Any]:
        """Return the next event: its id, name and data."""
        event: dict[str, Any] = {}
        end = time.monotonic() + WAIT_S
        for line in self._lines:
            assert time.monotonic() < end, "waited in vain"
            if not line:
                if "data" in event:
                    return event
                event = {}
                continue
            name, _, value = line.partition(": ")
            event[name] = json.loads(value) if name == "data" else value
        raise AssertionError("the stream has ended")

    def read_to_end(self) -> None:
        """Wait until the server ends the stream."""
        end = time.monotonic() + WAIT_S
        for _ in self._lines:
            assert time.monotonic() < end, "waited in vain"

    def close(self) -> None:
        self._stream.__exit__(None, None, None)
        self._client.close()


COFFEE = {
    "kind": "boolean",
    "region": {"circle": {"lon": -73.98, "lat": 40.75, "radius_m": 2000}},
    "where": "coffee AND (free OR sale)",
}


def thing(name: str, text: str = "Free coffee", lat: float = 40.75, **more: Any) -> dict[str, Any]:
    return {"id": name, "lon": -73.98, "lat": lat, "text": text, **more}


def results_of_log(root: Path) -> list[dict[str, Any]]:
    """Run the journal as a log and return the results of its subscriptions."""
    lines = [line for _, line in read_entries(root / "journal", 0)]
    return [result for result in run(lines).results if "subscription" in result]
