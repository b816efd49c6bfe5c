"""Hostile clients: an answer that says what is wrong, never a failure, never a hang."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placewire.cli.startup import ready_kernels
from placewire.model.events import SubscribeEvent
from placewire.serve.http import results
from placewire.serve.http.connection import Connection, ConnectionLimits
from profiles import examples
from service import COFFEE, Events, Service, serving, thing
from waits import WAIT_S

QUICK = ConnectionLimits(head_s=0.6, head_bytes=1 << 14, body_s=0.6, idle_s=1, stalled_s=3.0)
HEAD = b"host: localhost\r\n"
JSON = HEAD + b"content-type: application/json\r\n"
BODY = b'{"id":"o","lon":0,"lat":0,"text":"x"}'
ONE_OBJECT = b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY
FUZZ = settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    ready_kernels()
    with serving(tmp_path_factory.mktemp("hostile") / "state", connection_limits=QUICK) as running:
        # It closes idle connections after a second: a client must not use one at that moment.
        running.http.close()
        running.http = httpx.Client(
            base_url=running.url, timeout=WAIT_S, limits=httpx.Limits(max_keepalive_connections=0)
        )
        running.subscribe("s", **COFFEE)
        yield running


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the usual limits, for bodies that take time on a loaded machine."""
    with serving(tmp_path_factory.mktemp("patient") / "state") as running:
        running.subscribe("s", **COFFEE)
        yield running


@pytest.fixture(autouse=True)
def no_failure(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that a client does may be logged as an error of ours."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def talk(service: Service, *pieces: bytes, wait_s: float = WAIT_S, pause_s: float = 0.0) -> bytes:
    """Send raw bytes, and read until the connection is closed; fails if it is not."""
    with socket.create_connection(("127.0.0.1", service.port), wait_s) as line:
        with contextlib.suppress(OSError):
            for number, piece in enumerate(pieces):
                if number:
                    time.sleep(pause_s)
                line.sendall(piece)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := line.recv(1 << 16):
                got += piece
        return got


def statuses(answer: bytes) -> list[int]:
    return [int(code) for code in re.findall(rb"HTTP/1\.[01] (\d{3}) ", answer)]


def still_well(service: Service) -> None:
    """Check that it answers; on a loaded machine the check itself may be too slow for it (408)."""
    service.until(lambda: service.http.get("/health").status_code == 200)


PATHS = [
    b"/..%2f..%2f..%2fetc%2fpasswd",
    b"/static/..%2f..%2fapp.py",
    b"/static/../../app.py",
    b"/static/%2e%2e/%2e%2e/app.py",
    b"/static/..%5c..%5capp.py",
    b"/static//etc/passwd",
    b"/static/%00",
    b"/static/js/%00main.js",
    b"/static/" + b"x" * 5_000,
    b"/static/" + b"a/" * 2_000,
    b"/static",
    b"/static/",
    b"//evil.example/%2f..",
    b"//",
    b"/%",
    b"/%zz",
    b"/%ff%fe",
    b"/v1/subscriptions/%ff%fe",
    b"/v1/subscriptions/%00",
    b"/v1/subscriptions/%00/results",
    b"/v1/subscriptions/..%2f..%2f",
    b"/v1/subscriptions/" + b"%F0%9F%98%80" * 300,
    b"/v1/subscriptions//results",
    b"/v1/subscriptions/s/results?after=-1",
    b"/v1/subscriptions/s/results?after=99999999999999999999999999",
    b"/v1/subscriptions/s/results?after=%00&limit=%ff",
    b"/v1/subscriptions?after=%00%ff&limit=1",
    b"/v1/subscriptions/s/events?after=x",
    b"/v1/events?objects=2",
    b"/v1/objects/-1",
    b"/v1/objects/99999999999999999999999999999999",
    b"/v1/objects/1e9",
    b"/v1/keys/%2F",
    b"/\xff\xfe",
    b"/v1/subscriptions/\xc3\xbc",
    b"http://evil.example/v1/keys/x",
    b"*",
    b"health",
    b"",
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:40].decode("latin-1"))
def test_paths_lead_nowhere(service: Service, path: bytes) -> None:
    answer = talk(service, b"GET " + path + b" HTTP/1.1\r\n" + HEAD + b"connection: close\r\n\r\n")
    codes = statuses(answer)
    assert len(codes) == 1, answer
    assert 400 <= codes[0] < 500 or (codes[0] == 200 and b'"subscriptions"' in answer), answer
    assert b"root:" not in answer
    assert b"import" not in answer
    if codes[0] >= 400:
        assert b'{"error":' in answer
    still_well(service)


LONG = b"x" * (1 << 15)
HEADS: dict[str, tuple[bytes, set[int]]] = {
    "a huge header": (b"GET /health HTTP/1.1\r\n" + HEAD + b"x: " + LONG + b"\r\n\r\n", {431, 200}),
    "a header without an end": (b"GET /health HTTP/1.1\r\nx: " + LONG, {431}),
    "many headers": (
        b"GET /health HTTP/1.1\r\n" + HEAD + b"x: y\r\n" * 1_000 + b"connection: close\r\n\r\n",
        {200, 431},
    ),
    "an address without an end": (b"GET /" + LONG, {431}),
    "two lengths": (
        b"POST /v1/objects HTTP/1.1\r\n"
        + JSON
        + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        {400},
    ),
    "a length and chunks": (
        b"POST /v1/objects HTTP/1.1\r\n"
        + JSON
        + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        {400},
    ),
    "a length that is none": (
        b"POST /v1/objects HTTP/1.1\r\n" + JSON + b"content-length: -1\r\n\r\n", {400},
    ),
    "a chunk that is none": (
        b"POST /v1/objects HTTP/1.1\r\n" + JSON + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        {400},
    ),
    "other coding": (
        b"POST /v1/objects HTTP/1.1\r\n"
        + JSON
        + b"transfer-encoding: gzip, chunked\r\nconnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        {400, 422},
    ),
    "a line break in a header": (
        b"GET /health HTTP/1.1\r\nhost: localhost\nx: y\r\nconnection: close\r\n\r\n", {400, 200},
    ),
    "a carriage return in a header": (
        b"GET /health HTTP/1.1\r\nhost: local\rhost\r\n\r\n", {400},
    ),
    "a name that is not one": (b"GET /health HTTP/1.1\r\nbad name: y\r\n\r\n", {400}),
    "another's name": (
        b"GET /v1/keys HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n", {403},
    ),
    "no name at all": (
        b"GET /v1/keys HTTP/1.1\r\nhost: [::1\r\nconnection: close\r\n\r\n", {403},
    ),
    "two names": (
        b"GET /health HTTP/1.1\r\n" + HEAD + HEAD + b"connection: close\r\n\r\n", {400},
    ),
    "no host": (b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n", {400}),
    "an id that is not UTF-8": (
        b"GET /v1/subscriptions/%ff HTTP/1.1\r\n" + HEAD + b"connection: close\r\n\r\n", {400},
    ),
    "an empty idempotency key": (
        b"POST /v1/objects HTTP/1.1\r\n" + JSON + b"idempotency-key:\r\n" + ONE_OBJECT, {422},
    ),
    "two idempotency keys": (
        b"POST /v1/objects HTTP/1.1\r\n" + JSON
        + b"idempotency-key: a\r\nidempotency-key: b\r\n" + ONE_OBJECT, {422},
    ),
    "another's page": (
        b"GET /v1/keys HTTP/1.1\r\n" + HEAD + b"origin: http://[\r\nconnection: close\r\n\r\n",
        {403},
    ),
    "no page": (
        b"GET /v1/keys HTTP/1.1\r\n" + HEAD + b"origin: null\r\nconnection: close\r\n\r\n", {403},
    ),
    "a key in bytes": (
        b"GET /v1/keys HTTP/1.1\r\n"
        + HEAD
        + b"authorization: Bearer \xff\xfe\r\nconnection: close\r\n\r\n",
        {401},
    ),
    "another scheme": (
        b"GET /v1/keys HTTP/1.1\r\n"
        + HEAD
        + b"authorization: Basic eDp5\r\nconnection: close\r\n\r\n",
        {401},
    ),
    "a wrong method": (
        b"PATCH /v1/objects HTTP/1.1\r\n" + HEAD + b"connection: close\r\n\r\n", {405},
    ),
    "an unknown method": (b"BREW /health HTTP/1.1\r\n" + HEAD + b"\r\n", {400}),
    "tracing": (b"TRACE /health HTTP/1.1\r\n" + HEAD + b"connection: close\r\n\r\n", {405}),
    "an old version": (b"GET /health HTTP/1.0\r\n\r\n", {200}),
    "a stream for an old version": (b"GET /v1/events HTTP/1.0\r\n\r\n", {505}),
    "the head of a stream": (
        b"HEAD /v1/events HTTP/1.1\r\n" + HEAD + b"connection: close\r\n\r\n", {200},
    ),
    "a very old version": (b"GET /health\r\n\r\n", {200, 400}),
    "a version to come": (b"GET /health HTTP/3.0\r\n" + HEAD + b"\r\n", {400}),
    "the start of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400}),
    "something else": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400}),
    "a socket that is none": (
        b"GET /v1/socket HTTP/1.1\r\n"
        + HEAD
        + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n",
        {400, 426},
    ),
    "another upgrade": (
        b"GET /health HTTP/1.1\r\n" + HEAD + b"connection: upgrade, close\r\nupgrade: h2c\r\n\r\n",
        {200},
    ),
    "a body in another coding": (
        b"POST /v1/objects HTTP/1.1\r\n"
        + JSON
        + b"content-encoding: gzip\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
        {415},
    ),
    "a body that is too large": (
        b"POST /v1/objects HTTP/1.1\r\n" + JSON + b"content-length: 999999999999\r\n\r\n", {413},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_heads_are_read_strictly(service: Service, name: str) -> None:
    sent, expected = HEADS[name]
    codes = statuses(talk(service, sent))
    assert len(codes) == 1
    assert codes[0] in expected
    still_well(service)


def test_requests_sent_ahead_are_answered_in_order(service: Service) -> None:
    one = b"GET /v1/objects/%d HTTP/1.1\r\n" + HEAD + b"\r\n"
    last = b"GET /health HTTP/1.1\r\n" + HEAD + b"connection: close\r\n\r\n"
    answer = talk(service, b"".join(one % n for n in range(20, 30)) + last)
    assert statuses(answer) == [404] * 10 + [200]
    assert [b"event %d:" % n in answer for n in range(20, 30)] == [True] * 10
    # Too many are cut off.
    assert len(statuses(talk(service, (one % 1) * 3_000))) < 3_000
    still_well(service)


def test_a_stream_ends_with_its_connection_whatever_was_sent_behind_it(service: Service) -> None:
    before = service.gateway.broadcaster.listeners
    line = socket.create_connection(("127.0.0.1", service.port), WAIT_S)
    line.sendall(b"GET /v1/events HTTP/1.1\r\n" + HEAD + b"\r\n")
    service.until(lambda: service.gateway.broadcaster.listeners == before + 1)
    line.sendall(b"GET /health HTTP/1.1\r\n" + HEAD + b"\r\n")
    time.sleep(0.1)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset
    line.close()
    service.publish(thing("wake"))  # something is written, and finds nobody
    service.until(lambda: service.gateway.broadcaster.listeners == before)


# Slow ones.


def test_a_head_must_come_in_time(service: Service) -> None:
    begun = time.monotonic()
    assert talk(service) == b""
    assert statuses(talk(service, b"GET /hea")) == [408]
    drops = [bytes([byte]) for byte in b"GET /health HTTP/1.1\r\nhost: localhost\r\n" * 3]
    assert statuses(talk(service, *drops, pause_s=0.1)) in ([408], [])
    # The second request of a connection as well.
    first = b"GET /health HTTP/1.1\r\n" + HEAD + b"\r\n"
    with socket.create_connection(("127.0.0.1", service.port), WAIT_S) as line:
        line.sendall(first)
        got = line.recv(1 << 16)
        line.sendall(b"GET /hea")
        while piece := line.recv(1 << 16):
            got += piece
        assert statuses(got) == [200, 408]
    assert time.monotonic() - begun < WAIT_S


def test_a_connection_that_is_done_is_closed(service: Service) -> None:
    assert statuses(talk(service, b"GET /health HTTP/1.1\r\n" + HEAD + b"\r\n")) == [200]


def test_a_body_must_come_in_time(service: Service) -> None:
    head = b"POST /v1/objects HTTP/1.1\r\n" + JSON + b"content-length: 100\r\n\r\n"
    answer = talk(service, head, *[b"{"] * 30, pause_s=0.1)
    assert statuses(answer) == [408]
    assert b"was not received within 0.6 s" in answer
    # Nor may the rest of one that was refused trickle for ever.
    chunked = b"POST /nowhere HTTP/1.1\r\n" + JSON + b"transfer-encoding: chunked\r\n\r\n"
    begun = time.monotonic()
    assert statuses(talk(service, chunked, *[b"1\r\nx\r\n"] * 40, pause_s=0.1)) == [404]
    assert time.monotonic() - begun < WAIT_S / 2
    gone = talk(service, head, b'{"id":')  # and then nothing
    assert statuses(gone) == [408]
    still_well(service)


def test_many_idle_connections_keep_nobody_out(service: Service) -> None:
    idle = [socket.create_connection(("127.0.0.1", service.port), WAIT_S) for _ in range(300)]
    for line in idle:
        line.sendall(b"GET /")
    still_well(service)
    for line in idle:
        assert statuses(line.recv(1 << 12)) == [408]
        line.close()


UPGRADE = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@pytest.mark.parametrize(("end", "more"), [(b"events", b""), (b"socket", UPGRADE)])
def test_readers_that_never_read_cost_the_others_nothing(
    tmp_path: Path, end: bytes, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of streams and of sockets: what they do not take is bounded, and they are given up."""
    monkeypatch.setattr(results, "SEND_TIMEOUT_S", 5.0)
    asked = b"GET /v1/subscriptions/s/" + end + b" HTTP/1.1\r\n"
    with serving(tmp_path / "state", connection_limits=QUICK) as service:
        service.subscribe("s", **COFFEE)
        lazy = []
        for _ in range(60):
            line = socket.socket()
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            line.connect(("127.0.0.1", service.port))
            line.sendall(asked + HEAD + more + b"\r\n")
            lazy.append(line)
        service.until(lambda: service.gateway.broadcaster.listeners == 60)
        before = memory_bytes()
        listening = Events(service, "/v1/subscriptions/s/events")
        took = []
        for number in range(100):
            begun = time.monotonic()
            service.publish(*(thing(f"o{number}-{n}", data="x" * 15_000) for n in range(4)))
            for n in range(4):
                assert listening.next()["data"]["result"]["object"] == f"o{number}-{n}"
            took.append(time.monotonic() - begun)
        # Six megabytes for each of sixty, if they were kept.
        assert memory_bytes() - before < 150e6
        assert sorted(took)[len(took) // 2] < 2.0
        service.until(lambda: service.gateway.broadcaster.listeners == 1)
        listening.close()
        for line in lazy:
            line.close()


def memory_bytes() -> int:
    with open("/proc/self/statm") as facts:
        return int(facts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# Bodies.

CALLS = [
    ("post", "/v1/objects"),
    ("post", "/v1/subscriptions"),
    ("put", "/v1/subscriptions/fuzz"),
    ("post", "/v1/query"),
    ("post", "/v1/explain"),
    ("post", "/v1/plan"),
    ("post", "/v1/keys"),
]
NAMES = st.sampled_from(
    [
        *SubscribeEvent.__struct_fields__,
        "type",
        "text",
        "last",
        "limit",
        "box",
        "circle",
        "polygon",
        "radius_m",
        "all",
        "any",
        "none",
        "object",
        "subscription",
        "plan",
        "workers",
        "name",
        "roles",
        "seq",
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["boolean", "nearest", "relevant", "trending", "PT1H", "kdt", "coffee"])
)
VALUES = st.recursive(
    LEAVES, lambda one: st.lists(one, max_size=5) | st.dictionaries(NAMES, one, max_size=6)
)
BODIES = st.binary(max_size=200) | st.dictionaries(NAMES, VALUES, max_size=8).map(
    lambda value: json.dumps(value).encode()
)


@FUZZ
@given(
    call=st.sampled_from(CALLS),
    body=BODIES,
    kind=st.sampled_from(["application/json", "application/x-ndjson"]),
)
def test_bodies_may_be_anything(
    patient: Service, call: tuple[str, str], body: bytes, kind: str
) -> None:
    reply = patient.http.request(*call, content=body, headers={"content-type": kind})
    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400:
        assert reply.json()["error"]


DEEP = {
    "lists": b'{"id":"o","lon":0,"lat":0,"text":"x","data":' + b"[" * 60_000,
    "whole lists": b'{"id":"o","lon":0,"lat":0,"text":"x","data":'
    + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "objects": b'{"a":' * 20_000,
    "a number": b'{"id":"o","lon":' + b"9" * 100_000 + b',"lat":0,"text":"x"}',
    "a surrogate": rb'{"id":"\ud800","lon":0,"lat":0,"text":"x"}',
    "a repeated key": b'{"id":"o","id":"o","lon":0,"lat":0,"text":"x"}',
    "bytes": b'{"id":"\xff","lon":0,"lat":0,"text":"x"}',
    "a mark": b'\xef\xbb\xbf{"id":"o","lon":0,"lat":0,"text":"x"}',
    "nothing": b"",
    "spaces": b" " * 1_000,
    "too much": b'{"id":"o","lon":0,"lat":0,"text":"' + b"x" * (1 << 18) + b'"}',
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_deep_and_odd_bodies_are_refused(patient: Service, name: str) -> None:
    for method, path in CALLS:
        for kind in ("application/json", "application/x-ndjson"):
            reply = patient.http.request(
                method, path, content=DEEP[name], headers={"content-type": kind}
            )
            assert 400 <= reply.status_code < 500, reply.text
            assert reply.json()["error"]
            if name == "a surrogate" and path == "/v1/objects":
                assert "lone surrogate" in reply.text
    still_well(patient)


def test_lines_without_an_end_are_bounded(patient: Service) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * (1 << 20)

    reply = patient.http.post(
        "/v1/objects", content=pieces(), headers={"content-type": "application/x-ndjson"}
    )
    assert reply.status_code == 413
    still_well(patient)


def test_connections_are_ours() -> None:
    """The limits are kept by a subclass of uvicorn's own: it must still call what is overridden."""
    assert {"_start_asgi_task", "send_400_response", "on_response_complete"} <= set(
        vars(Connection.__mro__[1])
    )


@FUZZ
@given(junk=st.binary(min_size=1, max_size=300))
def test_bytes_may_be_anything(service: Service, junk: bytes) -> None:
    done: list[Any] = []
    for start in (b"", b"GET /health HTTP/1.1\r\n", b"POST /v1/objects HTTP/1.1\r\n" + JSON):
        talking = threading.Thread(
            target=lambda start=start: done.append(talk(service, start + junk + b"\r\n\r\n"))
        )
        talking.start()
        talking.join(WAIT_S)
    assert len(done) == 3
    assert all(code < 500 for answer in done for code in statuses(answer))
