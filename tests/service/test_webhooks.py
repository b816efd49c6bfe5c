"""Webhooks over HTTP: signed, in order, at least once, given up visibly, and never inwards."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from checkout import ROOT
from placewire.serve.auth import make_key
from placewire.serve.ledger.rows import DELIVERED, FAILED, WebhookDelivery
from placewire.serve.webhooks.dispatcher import RetryPolicy
from placewire.serve.webhooks.sender import CheckedNetwork, ForbiddenAddress, Sender
from receiver import Got, Receiver
from service import Service, serving

COFFEE = {"kind": "boolean", "where": "coffee"}
QUICK = RetryPolicy(tries=3, first_s=0.05, growth=1.0, jitter=0.0)
SECRET = "a-secret-of-the-receiver"


def thing(name: str, text: str = "coffee") -> dict[str, Any]:
    return {"id": name, "lon": 1.0, "lat": 2.0, "text": text}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    root = tmp_path_factory.mktemp("webhooks") / "state"
    with serving(root, allow_private=True, retries=QUICK) as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def put(service: Service, name: str, url: str, **more: Any) -> httpx.Response:
    body = {"webhook": {"url": url, "secret": SECRET}, **more}
    return service.http.put(f"/v1/subscriptions/{name}/delivery", json=body)


def hooked(service: Service, name: str, url: str, **more: Any) -> None:
    """A subscription to a word of its own, with a webhook."""
    service.subscribe(name, kind="boolean", where=name)
    reply = put(service, name, url, **more)
    assert reply.status_code == 201, reply.text


def shown(service: Service, name: str) -> dict[str, Any]:
    return dict(service.http.get(f"/v1/subscriptions/{name}/delivery").json())


def counted(service: Service, name: str) -> tuple[int, int, int, int]:
    told = shown(service, name)
    return told["delivered"], told["pending"], told["dropped"], told["failed"]


def numbers(requests: list[Got]) -> list[int]:
    return [number for one in requests for number in one.numbers]


def test_results_are_sent_signed_and_in_order(service: Service, receiver: Receiver) -> None:
    hooked(service, "signed", receiver.url("/in?a=b"))
    for number in range(5):
        service.publish(thing(f"o{number}", "signed"))
    service.until(lambda: counted(service, "signed") == (5, 0, 0, 0))
    assert numbers(receiver.got) == [1, 2, 3, 4, 5]
    got = receiver.got[0]
    assert got.path == "/in?a=b"
    assert got.told["subscription"] == "signed"
    first = got.told["results"][0]
    assert first.keys() == {"number", "id", "result"}
    assert (first["result"]["object"], first["id"]) == (
        "o0", f"{first['result']['seq']}:match:signed",
    )  # fmt: skip
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert got.headers["content-type"] == "application/json"
    moment = got.headers["placewire-timestamp"]
    assert abs(int(moment) - time.time()) < 60
    expected = hmac.new(SECRET.encode(), moment.encode() + b"." + got.body, hashlib.sha256)
    assert got.headers["placewire-signature"] == f"v1={expected.hexdigest()}"
    ids = [one.headers["placewire-delivery"] for one in receiver.got]
    assert len(set(ids)) == len(ids)


def test_what_the_docs_tell_receivers_to_check_holds(service: Service, receiver: Receiver) -> None:
    page = (ROOT / "docs" / "how-to" / "webhooks.md").read_text()
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    hooked(service, "documented", receiver.url())
    service.publish(thing("o", "documented"))
    service.until(lambda: receiver.got)
    got = receiver.got[0]
    assert names["is_genuine"](SECRET, got.headers, got.body, time.time())
    assert not names["is_genuine"](SECRET + "x", got.headers, got.body, time.time())


def test_a_secret_that_is_made_is_shown_once(service: Service, receiver: Receiver) -> None:
    service.subscribe("secretive", **COFFEE)
    path = "/v1/subscriptions/secretive/delivery"
    body = {"webhook": {"url": receiver.url()}}
    made = service.http.put(path, json=body)
    assert made.status_code == 201
    secret = made.json()["webhook"]["secret"]
    assert len(secret) > 40
    again = service.http.put(path, json=body)
    assert (again.status_code, again.json()["webhook"].keys()) == (200, {"url"})
    assert secret not in service.http.get(path).text
    listed = service.http.get("/v1/subscriptions/secretive").json()
    assert listed["delivery"]["webhook"] == {"url": receiver.url()}
    assert service.http.delete(path).status_code == 200
    assert service.http.delete(path).status_code == 404
    assert service.http.get(path).status_code == 404
    assert service.http.get("/v1/subscriptions/secretive").json()["delivery"] is None


def test_what_is_refused_is_repeated_under_the_same_id(
    service: Service, receiver: Receiver
) -> None:
    receiver.reply = lambda _, seen: 503 if seen < 2 else 204
    hooked(service, "repeated", receiver.url())
    service.publish(thing("o", "repeated"))
    service.until(lambda: counted(service, "repeated") == (1, 0, 0, 0))
    assert [one.status for one in receiver.got] == [503, 503, 204]
    assert len({one.body for one in receiver.got}) == 1
    assert len({one.headers["placewire-delivery"] for one in receiver.got}) == 1
    assert [one.headers["placewire-attempt"] for one in receiver.got] == ["1", "2", "3"]
    assert shown(service, "repeated")["error"] is None


def test_what_is_given_up_is_kept_and_sent_again_on_request(
    service: Service, receiver: Receiver
) -> None:
    receiver.reply = lambda _, seen: 500 if seen < 3 else 200
    hooked(service, "buried", receiver.url())
    service.publish(thing("o1", "buried"))
    service.until(lambda: counted(service, "buried") == (0, 0, 0, 1))
    service.publish(thing("o2", "buried"))
    service.until(lambda: counted(service, "buried") == (1, 0, 0, 1))
    path = "/v1/subscriptions/buried/delivery/dead"
    (dead,) = service.http.get(path).json()["dead"]
    assert (dead["first_number"], dead["last_number"], dead["attempts"]) == (1, 1, 3)
    assert dead["error"] == "replied 500"
    assert service.http.post(f"{path}/retry").json() == {"retried": 1}
    service.until(lambda: counted(service, "buried") == (2, 0, 0, 0))
    assert service.http.get(path).json()["dead"] == []
    assert receiver.got[-1].headers["placewire-delivery"] == dead["id"]
    assert numbers(receiver.got) == [1, 1, 1, 2, 1]


def test_a_receiver_that_is_gone_ends_it(service: Service, receiver: Receiver) -> None:
    receiver.reply = lambda path, seen: 410
    hooked(service, "gone", receiver.url())
    service.publish(thing("o1", "gone"))
    service.until(lambda: shown(service, "gone")["status"] == "ended")
    service.publish(thing("o2", "gone"))
    service.caught_up()
    service.until(lambda: len(service.results("gone")) == 2)
    assert len(receiver.got) == 1
    retried = service.http.post("/v1/subscriptions/gone/delivery/dead/retry")
    assert retried.status_code == 409
    # Wished for again, it goes on where it was.
    receiver.reply = lambda path, seen: 200
    assert put(service, "gone", receiver.url()).status_code == 200
    service.until(lambda: counted(service, "gone") == (2, 0, 0, 0))
    assert sorted(set(numbers(receiver.got))) == [1, 2]


def test_redirects_are_not_followed(service: Service, receiver: Receiver) -> None:
    receiver.reply = lambda path, seen: 307 if path == "/hook" else 200
    receiver.headers = {"location": receiver.url("/elsewhere")}
    hooked(service, "redirected", receiver.url())
    service.publish(thing("o", "redirected"))
    service.until(lambda: counted(service, "redirected")[3] == 1)
    assert receiver.of("/elsewhere") == []
    assert "redirects are not followed" in shown(service, "redirected")["error"]


def test_a_throttle_sends_the_latest_and_counts_the_rest(
    service: Service, receiver: Receiver
) -> None:
    hooked(service, "throttled", receiver.url(), throttle="PT1.5S")
    service.publish(thing("first", "throttled"))
    service.until(lambda: counted(service, "throttled") == (1, 0, 0, 0))
    service.publish(*(thing(f"o{number}", "throttled") for number in range(6)))
    service.until(lambda: counted(service, "throttled") == (2, 0, 5, 0))
    assert numbers(receiver.got) == [1, 7]
    assert receiver.got[1].at_s - receiver.got[0].at_s > 1.4
    assert [one["number"] for one in service.results("throttled", after=1)] == [2, 3, 4, 5, 6, 7]


def test_a_digest_is_one_body(service: Service, receiver: Receiver) -> None:
    hooked(service, "digested", receiver.url(), digest="PT1S")
    service.publish(*(thing(f"o{number}", "digested") for number in range(4)))
    service.until(lambda: counted(service, "digested") == (4, 0, 0, 0))
    assert [one.numbers for one in receiver.got] == [[1, 2, 3, 4]]


def test_slow_and_silent_ones_hold_up_nobody(service: Service, receiver: Receiver) -> None:
    hooked(service, "hare", receiver.url("/quick"))
    service.publish(thing("h", "hare"))
    service.until(lambda: counted(service, "hare") == (1, 0, 0, 0))
    receiver.wait_s = 90.0
    silent = socket.create_server(("127.0.0.1", 0), backlog=512)
    unheard = f"http://127.0.0.1:{silent.getsockname()[1]}/"
    concurrency = service.gateway.webhooks.concurrency
    many = [f"slow{number}" for number in range(concurrency.slow + concurrency.quick + 20)]
    for number, name in enumerate(many):
        service.subscribe(name, kind="boolean", where="snail")
        put(service, name, unheard if number % 4 else receiver.url("/slow"))
    service.publish(thing("s", "snail"))
    service.until(lambda: service.gateway.webhooks.in_progress >= concurrency.slow)
    begun = time.monotonic()
    for number in range(20):
        service.publish(thing(f"h{number}", "hare"))
    service.until(lambda: counted(service, "hare") == (21, 0, 0, 0))
    assert time.monotonic() - begun < receiver.wait_s
    assert numbers(receiver.of("/quick")) == list(range(1, 22))
    for name in many:
        service.http.delete(f"/v1/subscriptions/{name}/delivery")
    silent.close()


REFUSED = [
    ({}, "webhook: must be"),
    ({"webhook": {}}, "webhook.url"),
    ({"webhook": {"url": 5}}, "webhook.url"),
    ({"webhook": {"url": "ftp://a.example/"}}, "http://"),
    ({"webhook": {"url": "/relative"}}, "http://"),
    ({"webhook": {"url": "http://"}}, "host"),
    ({"webhook": {"url": "https://user:word@a.example/"}}, "user or password"),
    ({"webhook": {"url": "https://@a.example/"}}, "user or password"),
    ({"webhook": {"url": "https://a.example/#part"}}, "fragment"),
    ({"webhook": {"url": "https://a.example:0/"}}, "port"),
    ({"webhook": {"url": "https://a.example:99999/"}}, "webhook.url"),
    ({"webhook": {"url": "https://a.example/ b"}}, "ASCII"),
    ({"webhook": {"url": "https://a.example/\r\nx: y"}}, "ASCII"),
    ({"webhook": {"url": "https://a.example/" + "x" * 3_000}}, "2048"),
    ({"webhook": {"url": "https://a.example/", "secret": "short"}}, "16 to 256"),
    ({"webhook": {"url": "https://a.example/", "secret": "ü" * 20}}, "ASCII"),
    ({"webhook": {"url": "https://a.example/", "header": "x"}}, "fields are url, secret"),
    ({"webhook": {"url": "https://a.example/"}, "throttel": "PT1S"}, "fields are"),
    ({"webhook": {"url": "https://a.example/"}, "throttle": "1s"}, "throttle: a duration"),
    ({"webhook": {"url": "https://a.example/"}, "throttle": 5}, "throttle: a duration"),
    ({"webhook": {"url": "https://a.example/"}, "digest": "PT0.01S"}, "PT0.1S to P7D"),
    ({"webhook": {"url": "https://a.example/"}, "digest": "P8D"}, "PT0.1S to P7D"),
    ({"webhook": {"url": "https://a.example/"}, "digest": "PT1S", "throttle": "PT1S"}, "both"),
    ({"webhook": {"url": "https://a.example/"}, "after": -1}, "after: must be"),
    ({"webhook": {"url": "https://a.example/"}, "after": 10**20}, "after: must be"),
    ({"webhook": {"url": "https://a.example/"}, "after": True}, "after: must be"),
]


@pytest.mark.parametrize(("body", "says"), REFUSED)
def test_a_wrong_wish_is_refused(service: Service, body: dict[str, Any], says: str) -> None:
    service.subscribe("wrong", **COFFEE)
    reply = service.http.put("/v1/subscriptions/wrong/delivery", json=body)
    assert reply.status_code == 422, reply.text
    assert says in reply.json()["error"]
    assert service.http.get("/v1/subscriptions/wrong/delivery").status_code == 404


def test_figures_are_as_prometheus_reads_them(service: Service, receiver: Receiver) -> None:
    before = metrics(service)
    hooked(service, "metered", receiver.url())
    service.publish(thing("m1", "metered"), thing("m2", "metered"))
    service.http.post("/v1/objects", json={"id": "x"})
    service.until(lambda: counted(service, "metered") == (2, 0, 0, 0))
    after = metrics(service)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0.0)

    assert grown("placewire_events_accepted_total") == 3
    assert grown("placewire_events_rejected_total") == 1
    assert grown('placewire_requests_refused_total{status="422"}') == 1
    assert grown("placewire_results_total") == 2
    assert grown("placewire_webhook_results_total") == 2
    assert grown("placewire_journal_seq") == 3
    assert grown("placewire_journal_lines_total") == 3
    assert 1 <= grown("placewire_journal_writes_total") <= 3
    assert after['placewire_latency_seconds{quantile="0.99"}'] > 0
    assert after['placewire_results_dropped_total{why="throttled"}'] >= 0
    assert (after["placewire_up"], after["placewire_ledger_up"]) == (1, 1)
    assert after['placewire_plan_version{kind="boolean"}'] >= 1
    assert after["placewire_older_plan_subscriptions"] == 0


def metrics(service: Service) -> dict[str, float]:
    """All samples, each of a family that was announced right before."""
    reply = service.http.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples: dict[str, float] = {}
    families: list[str] = []
    lines = reply.text.split("\n")
    assert lines[-1] == ""
    for line in lines[:-1]:
        if line.startswith("# HELP "):
            families.append(line.split(" ")[2])
            assert len(set(families)) == len(families)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == families[-1]
            assert kind in ("counter", "gauge")
            assert name.endswith("_total") == (kind == "counter")
        else:
            name, value = line.rsplit(" ", 1)
            assert name.partition("{")[0] == families[-1]
            assert name not in samples
            samples[name] = float(value)
    return samples


# What outlasts a process, and whose it is.


def test_what_waits_is_sent_after_a_restart(tmp_path: Path, receiver: Receiver) -> None:
    service = Service(tmp_path / "state", allow_private=True, retries=QUICK)
    service.start_gateway()
    service.start_pipeline()
    receiver.reply = lambda path, seen: 500 if seen == 0 else 200
    patient = QUICK._replace(first_s=600.0)
    service.gateway.webhooks.retries = patient
    service.subscribe("kept", **COFFEE)
    put(service, "kept", receiver.url())
    service.publish(thing("o1"))
    service.until(lambda: shown(service, "kept")["attempts"] == 1)
    service.publish(thing("o2"), thing("o3"))
    service.until(lambda: len(service.results("kept")) == 3)
    service.stop_gateway()
    service.start_gateway()
    assert shown(service, "kept")["status"] == "retrying"
    # It waits as long as before, unless its owner asks for it.
    assert put(service, "kept", receiver.url()).status_code == 200
    service.until(lambda: counted(service, "kept") == (3, 0, 0, 0))
    assert numbers(receiver.got) == [1, 1, 2, 3]
    assert len({one.headers["placewire-delivery"] for one in receiver.got}) == 2
    # What comes while nobody sends is picked up at the start.
    service.publish(thing("o4"))
    service.until(lambda: counted(service, "kept") == (4, 0, 0, 0))
    service.stop_gateway()
    gateway_less = len(receiver.got)
    service.start_gateway()
    service.until(lambda: service.http.get("/health").status_code == 200)
    service.gateway.webhooks.on_results = lambda _: None  # type: ignore[method-assign]
    service.publish(thing("o5"))
    service.until(lambda: counted(service, "kept") == (4, 1, 0, 0))
    assert len(receiver.got) == gateway_less
    service.stop_gateway()
    service.start_gateway()
    service.until(lambda: counted(service, "kept") == (5, 0, 0, 0))
    service.stop_pipeline()
    service.stop_gateway()
    assert not service.problems


def test_a_webhook_belongs_to_its_owner(tmp_path: Path, receiver: Receiver) -> None:
    with serving(tmp_path / "state", False, require_keys=True, allow_private=True) as service:
        keys = {}
        for name in ("ann", "bob"):
            keys[name], kept = make_key(name, ("subscribe",))
            service.gateway.ledger.add_key(kept)

        def call(who: str, method: str, path: str, **more: Any) -> int:
            headers = {"authorization": f"Bearer {keys[who]}"} if who else {}
            path = f"/v1/subscriptions/s{path}"
            return service.http.request(method, path, headers=headers, **more).status_code

        wish = {"webhook": {"url": receiver.url()}}
        assert call("ann", "put", "", json=COFFEE) == 201
        assert call("", "put", "/delivery", json=wish) == 401
        assert call("bob", "put", "/delivery", json=wish) == 404
        assert call("ann", "get", "/delivery") == 404
        assert call("ann", "put", "/delivery", json=wish) == 201
        for method, path in (
            ("get", "/delivery"),
            ("delete", "/delivery"),
            ("get", "/delivery/dead"),
            ("post", "/delivery/dead/retry"),
        ):
            assert call("bob", method, path) == 404
        assert call("ann", "get", "/delivery/dead") == 200
        assert call("ann", "delete", "") == 200
        assert call("ann", "put", "/delivery", json=wish) == 404
        assert call("bob", "put", "", json=COFFEE) == 201
        assert call("bob", "get", "/delivery") == 404


INWARD_URLS = [
    "http://127.0.0.1/", "http://[::1]/", "http://10.0.0.1:8080/", "http://localhost/",
    "http://sub.localhost./", "https://a.example:22/", "http://[::ffff:127.0.0.1]/",
]  # fmt: skip


def test_private_addresses_are_refused_when_wished_for(tmp_path: Path) -> None:
    with serving(tmp_path / "state", pipeline=False) as service:
        service.subscribe("s", **COFFEE)
        for url in INWARD_URLS:
            reply = put(service, "s", url)
            assert reply.status_code == 422, url
        assert put(service, "s", "https://a.example:8443/").status_code == 201


def send(sender: Sender, url: str) -> tuple[str, str]:
    delivery = WebhookDelivery("s", "ann", "t", url, SECRET, 1, 1, 0)
    return asyncio.run(sender.send(delivery, b"{}"))


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f.1", "[::1]"])
def test_names_are_checked_when_a_connection_is_made(receiver: Receiver, host: str) -> None:
    outcome, error = send(Sender(allow_private=False), f"http://{host}:{receiver.port}/")
    assert outcome == FAILED
    assert "private" in error or "cannot be resolved" in error
    assert receiver.got == []


def test_every_address_of_a_name_is_checked_and_pinned(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [["127.0.0.1", "1.1.1.1"], ["127.0.0.1"]]
    asked: list[str] = []

    def resolve(host: str, port: int, *_: Any) -> list[Any]:
        asked.append(host)
        return [(0, 0, 0, "", (one, port)) for one in answers[min(len(asked), 2) - 1]]

    async def look() -> None:
        await CheckedNetwork(allow_private=False).resolve("two.example", 80)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(ForbiddenAddress):
        asyncio.run(look())
    asked.clear()
    answers[0] = ["127.0.0.1"]
    answers[1] = ["192.0.2.7"]  # what the name would lead to if it were asked again
    url = f"http://pinned.example:{receiver.port}/x"
    assert send(Sender(allow_private=True), url) == (DELIVERED, "")
    assert asked == ["pinned.example"]
    assert receiver.got[0].headers["host"] == f"pinned.example:{receiver.port}"


def make_certificate(folder: Path, name: str) -> Path:
    """A certificate that signs itself, and its key, in one file."""
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
         "-keyout", folder / "key", "-out", folder / "certificate"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    both = folder / "both"
    both.write_bytes((folder / "key").read_bytes() + (folder / "certificate").read_bytes())
    return both


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_certificate_is_checked_by_name_though_the_address_is_pinned(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path, "pinned.example")
    receiver.use_tls(certificate)
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, port, *_: [(0, 0, 0, "", ("127.0.0.1", port))]
    )
    trusting = ssl.create_default_context(cafile=tmp_path / "certificate")
    sender = Sender(allow_private=True, tls=trusting)
    assert send(sender, f"https://pinned.example:{receiver.port}/") == (DELIVERED, "")
    assert receiver.server_name == "pinned.example"
    outcome, error = send(sender, f"https://other.example:{receiver.port}/")
    assert (outcome, "certificate" in error.lower()) == (FAILED, True)
    outcome, error = send(Sender(allow_private=True), f"https://pinned.example:{receiver.port}/")
    assert (outcome, "certificate" in error.lower()) == (FAILED, True)
    assert len(receiver.got) == 1


def test_long_and_endless_replies_are_not_read(receiver: Receiver) -> None:
    receiver.body = b"x" * (1 << 24)
    begun = time.monotonic()
    assert send(Sender(allow_private=True), receiver.url())[0] == DELIVERED
    assert time.monotonic() - begun < 60.0


def raw_server(reply: bytes) -> int:
    """A server that says something and then nothing."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        connection.recv(65_536)
        connection.sendall(reply)
        while connection.recv(65_536):  # until the client gives up
            pass
        connection.close()
        server.close()

    threading.Thread(target=serve, daemon=True).start()
    return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (b"", "no reply within"),
        (b"SSH-2.0-x\r\n\r\n", "as HTTP has it"),
        (b"HTTP/1.1 2", "no reply"),
    ],
)
def test_what_is_no_reply_is_a_failure(reply: bytes, says: str) -> None:
    sender = Sender(allow_private=True, timeout_s=1.0)
    outcome, error = send(sender, f"http://127.0.0.1:{raw_server(reply)}/")
    assert outcome == FAILED
    assert says in error


def test_nobody_there_is_a_failure(receiver: Receiver) -> None:
    receiver.close()
    outcome, error = send(Sender(allow_private=True), receiver.url())
    assert outcome == FAILED
    assert "cannot be reached" in error


def test_bodies_are_json_whatever_the_names(service: Service, receiver: Receiver) -> None:
    name = 'odd "ü" \u2028'
    service.http.post("/v1/subscriptions", json={"id": name, "kind": "boolean", "where": "oddity"})
    path = f"/v1/subscriptions/{httpx.QueryParams({'x': name})}".replace("x=", "").replace(
        "+", "%20"
    )
    body = {"webhook": {"url": receiver.url()}}
    assert service.http.put(f"{path}/delivery", json=body).status_code == 201
    service.publish(thing("o", "oddity"))
    service.until(lambda: receiver.got)
    assert json.loads(receiver.got[0].body)["subscription"] == name
