"""The Python client: the methods of a server."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Any
from urllib.parse import quote

import msgspec

from placewire.serve.client.calls import RETRY_S, Calls
from placewire.serve.client.follower import ResultFollower
from placewire.serve.client.upload import Sent, chunks_of, send_chunks

NDJSON = {"content-type": "application/x-ndjson"}
PAGE = 500  # subscriptions per page

Given = dict[str, Any] | str | bytes


class Client:
    """A client of one server. Raises Declined, an Unusable, for rejected requests."""

    def __init__(self, url: str, key: str | None = None, patience_s: float = RETRY_S) -> None:
        self.calls = Calls(url, key, patience_s)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.calls.close()

    # Events in.

    def publish(self, objects: Given | Iterable[Given], name: str = "") -> Sent:
        """Publish one object or many, as dicts or JSON lines; returns what was accepted.

        Each object is accepted once, even if the connection is lost. With a `name`, publishing the
        same objects again under that name has no effect.
        """
        given = [objects] if isinstance(objects, dict | str | bytes) else objects
        lines = (to_line(one) for one in given)
        sent = Sent()
        for more in send_chunks(partial(self.send, "objects"), chunks_of(lines), name):
            sent = sent.with_more(more)
        return sent

    def send(self, what: str, lines: bytes, key: str) -> dict[str, Any]:
        """Send lines of objects or subscriptions under an idempotency key."""
        headers = {**NDJSON, "idempotency-key": key}
        return self.calls.ask("POST", f"/v1/{what}", content=lines, headers=headers)

    def subscribe(self, id: str | None = None, **subscription: Any) -> dict[str, Any]:
        """Create or replace a subscription; returns `id`, `seq` and whether it `replaced` one."""
        path = "/v1/subscriptions" if id is None else path_of(id)
        return self.calls.ask(
            "POST" if id is None else "PUT",
            path,
            json=subscription,
            headers={"idempotency-key": secrets.token_hex(12)},
        )

    def unsubscribe(self, id: str) -> dict[str, Any]:
        """End a subscription."""
        return self.calls.ask("DELETE", path_of(id), again=False)

    # Results out.

    def subscription(self, id: str) -> dict[str, Any]:
        """One subscription."""
        return self.calls.ask("GET", path_of(id))

    def subscriptions(self) -> Iterator[dict[str, Any]]:
        """Your own subscriptions, by id."""
        after: str | None = ""
        while after is not None:
            parameters = {"limit": str(PAGE)} | ({"after": after} if after else {})
            page = self.calls.ask("GET", "/v1/subscriptions", params=parameters)
            yield from page["subscriptions"]
            after = page["next"]

    def standing(self, id: str) -> dict[str, Any]:
        """The current result of a ranked subscription: its list, or its last report."""
        return self.calls.ask("GET", path_of(id, "standing"))

    def results(self, id: str, after: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """Results of a subscription after a number."""
        parameters = {"after": str(after), "limit": str(limit)}
        page = self.calls.ask("GET", path_of(id, "results"), params=parameters)
        return list(page["results"])

    def tail(
        self,
        *ids: str,
        after: int | str = "latest",
        objects: bool = False,
        seconds: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Follow the results of one subscription, of several, or of all your own.

        `after` is a result number for one subscription, otherwise a position among all results; 0
        starts with the oldest result that is kept, "latest" with the next one. A lost stream
        resumes where it left off. `objects` adds position and text of objects; `seconds` limits the
        time.
        """
        for name in ids:
            self.subscription(name)  # fails at once for an unknown id
        path = path_of(ids[0], "events") if len(ids) == 1 else "/v1/events"
        follower = ResultFollower(self.calls, path, after, objects)
        return (
            got for got in follower.results(seconds) if len(ids) < 2 or got["subscription"] in ids
        )

    def query(self, query: dict[str, Any], with_data: bool = False) -> dict[str, Any]:
        """Answer a snapshot query at the last commit."""
        parameters = {"with_data": "1"} if with_data else {}
        return self.calls.ask("POST", "/v1/query", params=parameters, json=query)

    # Administration.

    def health(self) -> dict[str, Any]:
        return self.calls.ask("GET", "/health")

    def status(self, leaves: int = 10) -> dict[str, Any]:
        """Status of the service and its state directory, with the heaviest `leaves`."""
        return self.calls.ask("GET", "/v1/status", params={"leaves": str(leaves)})

    def metrics(self) -> str:
        """Metrics in the Prometheus text format."""
        return self.calls.ask_text("/metrics")

    def explain(self, object: Any, subscription: Any) -> dict[str, Any]:
        """Why an object did or did not match a subscription."""
        body = {"object": object, "subscription": subscription}
        return self.calls.ask("POST", "/v1/explain", json=body)

    def plan(self) -> dict[str, Any]:
        """The boolean plan in use."""
        return self.calls.ask("GET", "/v1/plan")

    def ask_plan(self, plan: str = "", workers: int = 0) -> dict[str, Any]:
        """Request another plan by name, or another number of workers."""
        body: dict[str, Any] = {"plan": plan} if plan else {"workers": workers}
        return self.calls.ask("POST", "/v1/plan", json=body, again=False)

    def keys(self) -> list[dict[str, Any]]:
        return list(self.calls.ask("GET", "/v1/keys")["keys"])

    def add_key(self, name: str, roles: Iterable[str]) -> dict[str, Any]:
        """Create a key; the reply shows it once."""
        body = {"name": name, "roles": list(roles)}
        return self.calls.ask("POST", "/v1/keys", json=body, again=False)

    def end_key(self, name: str) -> dict[str, Any]:
        return self.calls.ask("DELETE", f"/v1/keys/{quote(name, safe='')}", again=False)


def connect(url: str, key: str | None = None, patience_s: float = RETRY_S) -> Client:
    """Return a client for the server at `url`; the first request shows whether it is reachable.

    A server that was reachable and is lost is retried for `patience_s` seconds. Raises
    `placewire.Unusable`.
    """
    return Client(url, key, patience_s)


def path_of(id: str, part: str = "") -> str:
    """The URL path of a subscription, with its id escaped."""
    name = quote(id, safe="")
    if id in (".", ".."):
        name = id.replace(".", "%2E")  # or the URL would be normalized to another path
    return f"/v1/subscriptions/{name}" + (f"/{part}" if part else "")


def to_line(given: Given) -> bytes:
    """An object as a JSON line."""
    if isinstance(given, dict):
        return msgspec.json.encode(given)
    return given.encode() if isinstance(given, str) else given
