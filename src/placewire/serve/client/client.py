"""The Python client: the methods of a server, and uploads of many lines.

Uploads send chunks of lines under idempotency keys: each line is accepted once despite retries.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

import msgspec

from placewire.model.errors import Unusable
from placewire.serve.client.calls import RETRY_S, Calls, Declined, ResultFollower

NDJSON = {"content-type": "application/x-ndjson"}
PAGE = 500  # subscriptions per page

Given = dict[str, Any] | str | bytes

CHUNK_LINES = 5_000
CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 24
WHOLE = (413, 422)  # statuses of a chunk with invalid lines

Send = Callable[[bytes, str], dict[str, Any]]  # lines and an idempotency key; raises Declined


class Client:
    """A client of one server. Raises Declined, an Unusable, for rejected requests."""

    def __init__(self, url: str, key: str | None = None, patience_s: float = RETRY_S) -> None:
        self.calls = Calls(url, key, patience_s)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
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


class RejectedLine(NamedTuple):
    """A line that was not accepted; numbers start at 1."""

    line: int
    error: str


class Sent(NamedTuple):
    """What was accepted. `errors` has the first hundred of each chunk."""

    first_seq: int | None = None
    last_seq: int | None = None
    accepted: int = 0
    rejected: int = 0
    errors: tuple[RejectedLine, ...] = ()

    def with_more(self, more: Sent) -> Sent:
        return Sent(
            self.first_seq if self.first_seq is not None else more.first_seq,
            more.last_seq if more.last_seq is not None else self.last_seq,
            self.accepted + more.accepted,
            self.rejected + more.rejected,
            (*self.errors, *more.errors),
        )

    def as_facts(self) -> dict[str, Any]:
        return {**self._asdict(), "errors": [error._asdict() for error in self.errors]}


def send_chunks(send: Send, chunks: Iterable[Sequence[bytes]], name: str = "") -> Iterator[Sent]:
    """Send chunk by chunk; yields what was accepted of each.

    Under one `name` each line is accepted once, in this run and in later ones: the number of the
    first line of a chunk identifies it. Raises Declined if the lines have changed.
    """
    name = name or secrets.token_hex(12)
    line = 0
    for chunk in chunks:
        yield send_chunk(send, chunk, name, line)
        line += len(chunk)


def send_chunk(send: Send, lines: Sequence[bytes], name: str, before: int) -> Sent:
    """Send lines that follow `before` others; halve a chunk that is rejected for some of them."""
    if not any(line.strip() for line in lines):
        return Sent()
    try:
        reply = send(b"\n".join(lines) + b"\n", f"{name}-{before}")
    except Declined as error:
        if error.status not in WHOLE:
            raise
        if "rejected" in error.body:
            reply = error.body
        elif "sent_lines" in error.body:
            return send_rest(send, lines, name, before, error.body["sent_lines"])
        elif len(lines) == 1:
            return Sent(rejected=1, errors=(RejectedLine(before + 1, str(error)),))
        else:
            half = len(lines) // 2
            first = send_chunk(send, lines[:half], name, before)
            return first.with_more(send_chunk(send, lines[half:], name, before + half))
    first_seq, accepted = reply.get("first_seq"), int(reply["accepted"])
    last_seq = None if first_seq is None else first_seq + accepted - 1
    errors = tuple(RejectedLine(before + one["line"], one["error"]) for one in reply["errors"])
    return Sent(first_seq, last_seq, accepted, reply["rejected"], errors)


def send_rest(send: Send, lines: Sequence[bytes], name: str, before: int, sent: int) -> Sent:
    """Send the lines after the first `sent` ones, which must be the same as before."""
    if not 0 < sent < len(lines):
        raise Declined(
            f"idempotency-key: lines from line {before + 1:,} on differ from the {sent:,} that were"
            f" sent under {name!r} before; use another name",
            422,
        )
    first = send_chunk(send, lines[:sent], name, before)
    return first.with_more(send_chunk(send, lines[sent:], name, before + sent))


def chunks_of(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Group lines into chunks within the server's limits."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        if chunk and (len(chunk) >= CHUNK_LINES or size + len(line) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(line)
        size += len(line) + 1
    if chunk:
        yield chunk


def read_chunks(
    source: BinaryIO, name: str, read: Callable[[int], None], steady: bool = False
) -> Iterator[list[bytes]]:
    """Read a file or pipe in chunks of lines, as they arrive; raises Unusable.

    `steady` chunks do not depend on how the source arrives: each one is full. `read` receives the
    number of bytes of each read.
    """
    pieces = read_lines(source, name, read)
    if steady:
        yield from chunks_of(line for lines in pieces for line in lines)
        return
    for lines in pieces:
        yield from chunks_of(lines)


def read_lines(source: BinaryIO, name: str, read: Callable[[int], None]) -> Iterator[list[bytes]]:
    """The lines that each read completes."""
    rest = b""
    line = 1
    while piece := source.read1(CHUNK_BYTES):  # type: ignore[attr-defined]
        read(len(piece))
        *lines, rest = (rest + piece).split(b"\n")
        yield lines
        line += len(lines)
        if len(rest) > MAX_LINE_BYTES:
            raise Unusable(f"{name}: line {line:,} has no end: must be JSON Lines")
    if rest:
        yield [rest]
