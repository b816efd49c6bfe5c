"""The client: what can be asked of a server, as methods."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Any
from urllib.parse import quote

import msgspec

from placewire.serve.client.calls import PATIENCE_S, Calls
from placewire.serve.client.follower import Following
from placewire.serve.client.upload import Sent, chunks_of, send_chunks

NDJSON = {"content-type": "application/x-ndjson"}
PAGE = 500  # subscriptions listed at once

Given = dict[str, Any] | str | bytes


class Client:
    """A server, by its address. Raises Declined, which is an Unusable, for what it refuses."""

    def __init__(self, url: str, key: str | None = None, patience_s: float = PATIENCE_S) -> None:
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

    # In.

    def publish(self, objects: Given | Iterable[Given], name: str = "") -> Sent:
        """Publish one object or many, dicts or lines of JSON; gives what became of them.

        A lost connection doubles nothing. With a `name` nothing is published twice either when
        the same objects are published under it again.
        """
        given = [objects] if isinstance(objects, dict | str | bytes) else objects
        lines = (to_line(one) for one in given)
        sent = Sent()
        for more in send_chunks(partial(self.send, "objects"), chunks_of(lines), name):
            sent = sent.with_more(more)
        return sent

    def send(self, what: str, lines: bytes, key: str) -> dict[str, Any]:
        """Send lines of objects or subscriptions, once under a key."""
        headers = {**NDJSON, "idempotency-key": key}
        return self.calls.ask("POST", f"/v1/{what}", content=lines, headers=headers)

    def subscribe(self, id: str | None = None, **subscription: Any) -> dict[str, Any]:
        """Make or replace a subscription; gives its `id`, its `seq` and whether it `replaced`."""
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

    # Out.

    def subscription(self, id: str) -> dict[str, Any]:
        """One subscription as the server has it."""
        return self.calls.ask("GET", path_of(id))

    def subscriptions(self) -> Iterator[dict[str, Any]]:
        """One's own subscriptions, by id."""
        after: str | None = ""
        while after is not None:
            parameters = {"limit": str(PAGE)} | ({"after": after} if after else {})
            page = self.calls.ask("GET", "/v1/subscriptions", params=parameters)
            yield from page["subscriptions"]
            after = page["next"]

    def standing(self, id: str) -> dict[str, Any]:
        """Where a ranked subscription stands: its list, or its last report."""
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
        """Results as they come, of one subscription, of several, or of all one's own.

        `after` is a number of the one subscription, otherwise a position among all results;
        0 begins with the first that is kept, "latest" now. A lost stream goes on where it was.
        `objects` adds what the object says and where it is, `seconds` ends it.
        """
        for name in ids:
            self.subscription(name)  # one that is not there is refused at once
        path = path_of(ids[0], "events") if len(ids) == 1 else "/v1/events"
        following = Following(self.calls, path, after, objects)
        return (
            got for got in following.results(seconds) if len(ids) < 2 or got["subscription"] in ids
        )

    def query(self, query: dict[str, Any], with_data: bool = False) -> dict[str, Any]:
        """The answer to a snapshot query, as of the last commit."""
        parameters = {"with_data": "1"} if with_data else {}
        return self.calls.ask("POST", "/v1/query", params=parameters, json=query)

    # The service itself.

    def health(self) -> dict[str, Any]:
        return self.calls.ask("GET", "/health")

    def status(self, leaves: int = 10) -> dict[str, Any]:
        """How the service and its state stand, with so many of the heaviest leaves."""
        return self.calls.ask("GET", "/v1/status", params={"leaves": str(leaves)})

    def metrics(self) -> str:
        """Metrics in Prometheus' text format."""
        return self.calls.ask_text("/metrics")

    def explain(self, object: Any, subscription: Any) -> dict[str, Any]:
        """Why an object did or did not match a subscription."""
        body = {"object": object, "subscription": subscription}
        return self.calls.ask("POST", "/v1/explain", json=body)

    def plan(self) -> dict[str, Any]:
        """The boolean plan in force."""
        return self.calls.ask("GET", "/v1/plan")

    def ask_plan(self, plan: str = "", workers: int = 0) -> dict[str, Any]:
        """Ask for another plan by its name, or for other workers."""
        body: dict[str, Any] = {"plan": plan} if plan else {"workers": workers}
        return self.calls.ask("POST", "/v1/plan", json=body, again=False)

    def keys(self) -> list[dict[str, Any]]:
        return list(self.calls.ask("GET", "/v1/keys")["keys"])

    def add_key(self, name: str, roles: Iterable[str]) -> dict[str, Any]:
        """Make a key; it is in the reply, and never again."""
        body = {"name": name, "roles": list(roles)}
        return self.calls.ask("POST", "/v1/keys", json=body, again=False)

    def end_key(self, name: str) -> dict[str, Any]:
        return self.calls.ask("DELETE", f"/v1/keys/{quote(name, safe='')}", again=False)


def connect(url: str, key: str | None = None, patience_s: float = PATIENCE_S) -> Client:
    """A client of the server at an address; the first request says whether it is there.

    A server that was there and is lost is tried again for `patience_s` seconds. Raises
    `placewire.Unusable`.
    """
    return Client(url, key, patience_s)


def path_of(id: str, part: str = "") -> str:
    """The path of a subscription, whatever characters its id has."""
    name = quote(id, safe="")
    if id in (".", ".."):
        name = id.replace(".", "%2E")  # or the path would be another one
    return f"/v1/subscriptions/{name}" + (f"/{part}" if part else "")


def to_line(given: Given) -> bytes:
    """An object as a line of JSON."""
    if isinstance(given, dict):
        return msgspec.json.encode(given)
    return given.encode() if isinstance(given, str) else given
