"""The service over HTTP: accepted and durable, matched, numbered, delivered, owned."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from page_libraries import need_libraries
from placewire import run
from placewire.model.settings import Settings
from placewire.serve import auth
from placewire.serve.auth import make_key
from placewire.serve.client import Client
from placewire.serve.client.calls import Declined
from placewire.serve.gateway import HEARTBEAT_TIMEOUT_S
from placewire.serve.http import live_map
from placewire.serve.offline import OfflineReader
from placewire.serve.pipeline import PipelineOptions, run_pipeline
from placewire.storage.journal import journal_folder, read_entries
from service import COFFEE, Events, Service, serving, thing
from waits import WAIT_S


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("serve") / "state") as running:
        yield running


def test_an_object_becomes_a_numbered_result(service: Service) -> None:
    assert service.subscribe("numbered", **COFFEE)["replaced"] is False
    reply = service.http.post("/v1/objects", json=thing("o1"))
    assert reply.status_code == 202
    seq = reply.json()["seq"]
    service.publish(thing("o2"), thing("o3", "tea"))
    service.until(lambda: len(service.results("numbered")) == 2)
    first, second = service.results("numbered")
    assert first["result"] == {
        "seq": seq, "type": "match", "subscription": "numbered", "object": "o1",
    }  # fmt: skip
    assert (first["number"], first["id"]) == (1, f"{seq}:match:numbered")
    assert (second["number"], second["result"]["object"]) == (2, "o2")
    assert service.results("numbered", after=1) == [second]
    back = service.http.get(f"/v1/objects/{seq}").json()
    assert (back["seq"], back["object"]["text"]) == (seq, "Free coffee")


def test_streams_resume_where_they_were(service: Service) -> None:
    service.subscribe("streamed", **COFFEE)
    path = "/v1/subscriptions/streamed/events"
    listening = Events(service, path)
    service.publish(thing("a"))
    event = listening.next()
    assert (event["id"], event["event"]) == ("1", "match")
    assert event["data"]["result"]["object"] == "a"
    listening.close()
    service.publish(thing("b"))
    service.caught_up()
    service.until(lambda: len(service.results("streamed")) == 2)
    again = Events(service, path, **{"last-event-id": "1"})
    assert again.next()["data"]["result"]["object"] == "b"
    service.publish(thing("c"))
    assert again.next()["data"]["result"]["object"] == "c"
    again.close()
    latest = Events(service, f"{path}?after=latest&objects=1")
    service.publish(thing("d", "free coffee again"))
    data = latest.next()["data"]
    assert data["objects"]["d"]["text"] == "free coffee again"
    latest.close()


def test_a_socket_has_the_same(service: Service) -> None:
    service.subscribe("socketed", **COFFEE)
    service.publish(thing("w1"))
    url = service.url.replace("http", "ws") + "/v1/subscriptions/socketed/socket"
    with connect(url) as socket:
        assert json.loads(socket.recv(30))["result"]["object"] == "w1"
        service.publish(thing("w2"))
        told = json.loads(socket.recv(30))
        assert (told["number"], told["result"]["object"]) == (2, "w2")


def test_one_stream_has_all_of_ones_own(service: Service) -> None:
    service.subscribe("all-1", **COFFEE)
    service.subscribe("all-2", kind="nearest", lon=-73.98, lat=40.75, keywords=["cocoa"], k=1)
    service.caught_up()
    stream = Events(service, "/v1/events?after=latest")
    service.publish(thing("x", "free coffee and cocoa"))
    got: list[dict[str, Any]] = []
    while not {"all-1", "all-2"} <= {data["subscription"] for data in got}:
        got.append(stream.next()["data"])
    positions = [data["position"] for data in got]
    assert positions == sorted(positions)
    stream.close()


def test_ranked_lists_stand(service: Service) -> None:
    service.subscribe("ranked", kind="nearest", lon=-73.98, lat=40.75, keywords=["bagel"], k=2)
    for name, lat in (("far", 40.9), ("near", 40.76), ("nearest", 40.755)):
        service.publish(thing(name, "bagel", lat))
    service.until(lambda: len(service.results("ranked")) == 3)
    listed = service.http.get("/v1/subscriptions/ranked/standing").json()["objects"]
    assert [one["object"] for one in listed] == ["nearest", "near"]
    assert service.http.get("/v1/subscriptions/numbered/standing").status_code == 404


def test_subscriptions_are_listed_replaced_and_ended(service: Service) -> None:
    service.subscribe("listed", **COFFEE)
    assert service.subscribe("listed", kind="boolean", where="tea")["replaced"] is True
    shown = service.http.get("/v1/subscriptions/listed").json()
    assert (shown["status"], shown["subscription"]["where"]) == ("live", "tea")
    page = service.http.get("/v1/subscriptions?limit=1").json()
    assert len(page["subscriptions"]) == 1
    following = service.http.get(f"/v1/subscriptions?limit=1&after={page['next']}").json()
    assert following["subscriptions"][0]["id"] > page["next"]
    assert service.http.delete("/v1/subscriptions/listed").status_code == 200
    assert service.http.get("/v1/subscriptions/listed").json()["status"] == "ended"
    assert service.http.delete("/v1/subscriptions/listed").status_code == 404
    service.publish(thing("t", "tea"))
    service.caught_up()
    assert service.results("listed") == []


def test_ids_may_have_any_characters(service: Service) -> None:
    for name in ("a/b", "100%", "%2F", "ü ñ", "a?b#c", "results"):
        made = service.http.post("/v1/subscriptions", json={"id": name, **COFFEE})
        assert made.json()["id"] == name
        shown = service.http.get(f"/v1/subscriptions/{quote(name, safe='')}")
        assert shown.json().get("id") == name, shown.text


def test_an_idempotency_key_repeats_the_reply(service: Service) -> None:
    headers = {"idempotency-key": "once"}
    first = service.http.post("/v1/objects", json=thing("i"), headers=headers).json()
    again = service.http.post("/v1/objects", json=thing("i"), headers=headers).json()
    assert first == again
    other = service.http.post("/v1/objects", json=thing("j"), headers=headers)
    assert other.status_code == 422
    wish = {"headers": {"idempotency-key": "wish"}, "json": COFFEE}
    made = [service.http.post("/v1/subscriptions", **wish).json() for _ in range(2)]  # type: ignore[arg-type]
    assert made[0] == made[1]
    first["seq"] += 1
    assert service.http.get("/health").json()["seq"] == first["seq"] + 1


def test_a_query_is_answered_from_the_last_commit(service: Service) -> None:
    service.publish(thing("q", "a rare quokka"))
    service.caught_up()
    asked = {"kind": "boolean", "where": "quokka", "last": "PT1H"}
    answer = service.http.post("/v1/query", json=asked).json()
    assert answer == {"type": "answer", "total": 1, "objects": [{"object": "q"}]}
    bad = service.http.post("/v1/query", json={"kind": "boolean", "last": "PT1H"})
    assert bad.status_code == 422
    assert "region" in bad.json()["error"]


def test_results_are_those_of_the_journal_as_a_log(service: Service) -> None:
    service.caught_up()
    lines = [line for _, line in read_entries(journal_folder(service.gateway.state), 0)]
    expected = [r for r in run(lines).results if "subscription" in r]
    service.until(lambda: service.gateway.ledger.position == len(expected))
    kept = service.gateway.ledger.results_after(None, 0, 100_000)
    assert [json.loads(entry.body) for entry in kept] == expected


REFUSED = [
    ("post", "/v1/objects", {"id": "o", "lon": 200, "lat": 0, "text": "x"}, 422, "lon must be"),
    ("post", "/v1/objects", {"id": "o", "lon": 0, "lat": 0}, 422, "text"),
    ("post", "/v1/objects", [1], 422, "one JSON object, got list"),
    ("post", "/v1/objects", {**thing("o"), "type": "subscribe"}, 422, "type: must be 'object'"),
    ("post", "/v1/objects", {**thing("o"), "ts": "9999-01-01T00:00:00Z"}, 422, "max_ahead"),
    ("put", "/v1/subscriptions/s", {"kind": "nearest"}, 422, "needs the field 'lon'"),
    ("put", "/v1/subscriptions/s", {"id": "t", **COFFEE}, 422, "id: must be 's'"),
    ("put", "/v1/subscriptions/" + "x" * 300, COFFEE, 422, "1 to 256"),
    ("put", "/v1/subscriptions/a%00b", COFFEE, 422, "NUL"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "says"), REFUSED)
def test_what_is_wrong_is_said(
    service: Service, method: str, path: str, body: Any, status: int, says: str
) -> None:
    seq = service.http.get("/health").json()["seq"]
    reply = service.http.request(method, path, json=body)
    assert reply.status_code == status, reply.text
    assert says in reply.json()["error"]
    assert service.http.get("/health").json()["seq"] == seq


def test_lines_are_accepted_one_by_one(service: Service) -> None:
    body = (
        json.dumps(thing("l1")) + '\n{"id":"l2"}\n\nnot json\n' + json.dumps(thing("l3")) + "\r\n"
    )
    headers = {"content-type": "application/x-ndjson"}
    reply = service.http.post("/v1/objects", content=body, headers=headers).json()
    assert (reply["accepted"], reply["rejected"]) == (2, 2)
    # Numbers are those of the body, in which empty lines count.
    assert [error["line"] for error in reply["errors"]] == [2, 4]
    none = service.http.post("/v1/objects", content="{}\n", headers=headers)
    assert none.status_code == 422


def test_pages_of_elsewhere_are_refused(service: Service) -> None:
    evil = service.http.post(
        "/v1/objects", json=thing("e"), headers={"origin": "https://evil.example"}
    )
    assert evil.status_code == 403
    pointed = service.http.get("/v1/subscriptions", headers={"host": "evil.example"})
    assert pointed.status_code == 403


def test_keys_own_their_subscriptions(tmp_path: Path) -> None:
    with serving(tmp_path / "state", require_keys=True) as service:
        assert service.gateway is not None
        keys = {}
        for name, roles in (
            ("ann", ("subscribe",)),
            ("bob", ("subscribe", "publish")),
            ("root", ("admin",)),
        ):
            keys[name], kept = make_key(name, roles)
            assert service.gateway.ledger.add_key(kept)

        def call(who: str, method: str, path: str, **more: Any) -> httpx.Response:
            headers = {"authorization": f"Bearer {keys[who]}"} if who else {}
            return service.http.request(method, path, headers=headers, **more)

        assert call("", "get", "/v1/subscriptions").status_code == 401
        assert call("", "get", "/health").status_code == 200
        assert call("ann", "put", "/v1/subscriptions/s", json=COFFEE).status_code == 201
        assert call("bob", "put", "/v1/subscriptions/s", json=COFFEE).status_code == 409
        assert call("bob", "get", "/v1/subscriptions/s").status_code == 404
        assert call("bob", "delete", "/v1/subscriptions/s").status_code == 404
        assert call("ann", "post", "/v1/objects", json=thing("o")).status_code == 403
        assert call("bob", "post", "/v1/objects", json=thing("o1")).status_code == 202
        service.until(lambda: call("ann", "get", "/v1/subscriptions/s/results").json()["results"])
        assert call("bob", "get", "/v1/subscriptions/s/events").status_code == 404
        assert call("ann", "get", "/v1/dead-letters").status_code == 403
        assert call("root", "get", "/v1/subscriptions/s").json()["owner"] == "ann"
        # An id that was given up may be another's, who sees nothing of what was before.
        assert call("ann", "delete", "/v1/subscriptions/s").status_code == 200
        assert call("bob", "put", "/v1/subscriptions/s", json=COFFEE).status_code == 201
        call("bob", "post", "/v1/objects", json=thing("o2"))
        found = service.until(
            lambda: call("bob", "get", "/v1/subscriptions/s/results").json()["results"]
        )
        assert [one["result"]["object"] for one in found] == ["o2"]
        made = call("root", "post", "/v1/keys", json={"name": "cy", "roles": ["publish"]})
        keys["cy"] = made.json()["key"]
        assert call("cy", "post", "/v1/objects", json=thing("o3")).status_code == 202
        assert call("root", "delete", "/v1/keys/cy").status_code == 200
        assert call("cy", "post", "/v1/objects", json=thing("o4")).status_code == 401


def test_a_cursor_beyond_the_end_is_refused(service: Service) -> None:
    """It would be silent for ever, or until so many have come."""
    service.subscribe("few", kind="boolean", where="beyond")
    service.publish(thing("few-1", "beyond"), thing("few-2", "beyond"))
    service.until(lambda: len(service.results("few")) == 2)
    get, path = service.http.get, "/v1/subscriptions/few"
    beyond = "must be 0..2 or 'latest', got 999999"
    header = {"last-event-id": "999999"}
    assert get(f"{path}/events", headers=header).json()["error"] == f"last-event-id: {beyond}"
    assert get(f"{path}/events?after=999999").json()["error"] == f"after: {beyond}"
    page = get(f"{path}/results?after=3")
    assert (page.status_code, page.json()["error"]) == (422, "after: must be 0..2, got 3")
    assert get(f"{path}/results?after=2").json() == {"results": [], "next": 2}
    every = get("/v1/events?after=999999")
    assert (every.status_code, every.json()["error"].startswith("after: must be 0..")) == (
        422,
        True,
    )
    bad = get(f"{path}/events", headers={"last-event-id": "x"})
    assert bad.json()["error"] == "last-event-id: must be a number or 'latest', got 'x'"
    with pytest.raises(InvalidStatus, match="422"):
        connect(f"{service.url.replace('http', 'ws')}{path}/socket?after=3")
    with closing(Client(service.url)) as client, pytest.raises(Declined, match=r"0\.\.2 or"):
        next(client.tail("few", after=3))
    with (
        closing(OfflineReader(service.root)) as reader,
        pytest.raises(Declined, match=r"0\.\.2 or"),
    ):
        next(reader.tail("few", after=3))


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    service = Service(tmp_path / "state")
    service.start_gateway()
    service.subscribe("kept", **COFFEE)
    headers = {"idempotency-key": "k"}
    first = service.http.post("/v1/objects", json=thing("o1"), headers=headers).json()
    service.stop_gateway()
    # The ledger has lost everything: it follows from the journal, if that is asked for.
    (tmp_path / "state" / "ledger.sqlite").unlink()
    service.options = service.options._replace(renew_ledger=True)
    service.start_gateway()
    again = service.http.post("/v1/objects", json=thing("o1"), headers=headers).json()
    assert again == first
    service.start_pipeline()
    service.until(lambda: len(service.results("kept")) == 1)
    service.stop_pipeline()
    service.publish(thing("o2"))
    service.stop_gateway()
    service.start_pipeline()
    service.start_gateway()
    service.until(lambda: len(service.results("kept")) == 2)
    assert [one["number"] for one in service.results("kept")] == [1, 2]
    service.stop_pipeline()
    service.stop_gateway()
    assert not service.problems


def test_too_much_at_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Room for ten events that takes minutes to fill again, however slow the machine is.
    monkeypatch.setattr(auth, "BURST_S", 1_000.0)
    with serving(tmp_path / "state", pipeline=False, rate=0.01) as service:
        for number in range(10):
            assert service.http.post("/v1/objects", json=thing(f"o{number}")).status_code == 202
        more = service.http.post("/v1/objects", json=thing("more"))
        assert more.status_code == 429
        assert int(more.headers["retry-after"]) >= 1
        large = service.http.post(
            "/v1/objects", content=b"x" * (1 << 18), headers={"content-type": "application/json"}
        )
        assert large.status_code == 413


def test_the_wire_tells_how_it_stands(service: Service) -> None:
    service.publish(thing("s1"))
    service.caught_up()
    status = service.http.get("/v1/status").json()
    assert status["events"] == status["service"]["seq"]
    assert status["service"]["pipeline"] == "running"
    plan = service.http.get("/v1/plan").json()
    assert (plan["name"], len(plan["leaves"])) == ("shared", 1)
    assert service.http.post("/v1/plan", json={"plan": "nonsense"}).status_code == 422
    assert service.http.post("/v1/plan", json={"workers": True}).status_code == 422


def test_a_plan_that_is_asked_for_is_told_by_its_name(tmp_path: Path) -> None:
    with serving(tmp_path / "state", pipeline=False) as service:
        service.start_pipeline(workers="2")
        for west in range(-40, 40, 10):
            region = {"box": [west, -10, west + 9, 10]}
            service.subscribe(f"s{west}", kind="boolean", region=region)
        heard = Events(service, "/v1/live")

        def publish_and_look() -> dict[str, Any]:
            service.publish(*(thing(f"o{lon}") | {"lon": lon, "lat": 0} for lon in range(-40, 40)))
            service.caught_up()
            return dict(service.http.get("/v1/plan").json())

        before = publish_and_look()
        assert (before["name"], before["version"], len(before["leaves"])) == ("shared", 1, 1)
        for asked, version, leaves in (("kdt", 2, 2), ("shared", 3, 1)):
            assert service.http.post("/v1/plan", json={"plan": asked}).status_code == 202
            service.until(lambda version=version: publish_and_look()["version"] == version)
            plan = publish_and_look()
            assert (plan["name"], len(plan["leaves"])) == (asked, leaves)
            while (event := heard.next())["event"] != "plan":
                pass
            assert (event["data"]["name"], event["data"]["version"]) == (asked, version)
            line = f"{asked}, requested"
            assert event["data"]["line"] == plan["changes"][-1]["line"] == line
        heard.close()


def test_lists_tell_what_their_objects_say(service: Service) -> None:
    point = {"lon": 100.0, "lat": 10.0, "keywords": ["juniper"], "k": 2}
    texts = {"j1": "juniper far", "j2": "juniper near"}
    for name, lon in (("j1", 100.2), ("j2", 100.1)):
        service.publish(thing(name, "an older juniper"))
        service.publish(thing(name, texts[name]) | {"lon": lon, "lat": 10.0})
    service.subscribe("junipers", kind="relevant", alpha=1, **point)
    service.until(lambda: len(service.results("junipers")) == 1)
    details = {
        "j2": {"seq": None, "lon": 100.1, "lat": 10.0, "text": "juniper near"},
        "j1": {"seq": None, "lon": 100.2, "lat": 10.0, "text": "juniper far"},
    }
    path = "/v1/subscriptions/junipers/standing"
    plain = service.http.get(path).json()
    assert [one["object"] for one in plain["objects"]] == ["j2", "j1"]
    assert "details" not in plain
    told = service.http.get(f"{path}?objects=1").json()
    for name, known in details.items():
        known["seq"] = seq = told["details"][name]["seq"]
        assert service.http.get(f"/v1/objects/{seq}").json()["object"]["text"] == texts[name]
    assert told == plain | {"details": details}
    query = {"kind": "nearest", "last": "PT1H", **point}
    answer = service.http.post("/v1/query", json=query).json()
    assert "details" not in answer
    assert service.http.post("/v1/query?objects=1", json=query).json() == answer | {
        "details": details
    }
    # What a new subscription finds already came before its event: its first update has it too.
    events = Events(service, "/v1/subscriptions/junipers/events?objects=1")
    assert events.next()["data"]["objects"] == details
    events.close()


def test_the_expired_are_not_counted(tmp_path: Path) -> None:
    def counts(service: Service) -> tuple[int, int]:
        service.caught_up()
        status = service.http.get("/v1/status").json()
        return sum(status["subscriptions"].values()), status["service"]["subscriptions"]

    with serving(tmp_path / "state") as service:
        later = {"expires": "2027-01-01T00:00:01Z"}
        for name in ("a", "b", "c"):
            service.subscribe(name, ts="2027-01-01T00:00:00Z", **COFFEE, **later)
        service.subscribe("d", ts="2027-01-01T00:00:00Z", **COFFEE)
        service.http.delete("/v1/subscriptions/c")
        service.publish(thing("o") | {"ts": "2027-01-01T00:00:00Z"})
        assert counts(service) == (3, 3)
        service.publish(thing("o") | {"ts": later["expires"]})
        assert counts(service) == (1, 1)


def test_a_pair_is_explained(service: Service) -> None:
    service.subscribe("explained", **COFFEE)
    seq = service.publish(thing("far", "free tea"))["first_seq"]
    service.caught_up()
    body = {"object": {"seq": seq}, "subscription": {"id": "explained"}}
    told = service.http.post("/v1/explain", json=body).json()
    assert told["matches"] is False
    assert "coffee" in told["verdict"]
    given = {"object": thing("o"), "subscription": COFFEE}
    assert service.http.post("/v1/explain", json=given).json()["matches"] is not False
    unknown = {"object": {"seq": seq}, "subscription": {"id": "nobody"}}
    assert service.http.post("/v1/explain", json=unknown).status_code == 404


def test_the_page_is_served_with_a_strict_policy(service: Service) -> None:
    need_libraries()
    page = service.http.get("/")
    assert page.status_code == 200
    assert "<title>" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    check_files_of(page, service)
    for path in ("/static/..%2f..%2fapp.py", "/static/%2e%2e/app.py", "/static/"):
        assert service.http.get(path).status_code == 404, path


def check_files_of(page: httpx.Response, service: Service) -> None:
    files = re.findall(r'(?:src|href)="(static/[^"]+)"', page.text)
    assert len(files) >= 4
    for file in files:
        assert service.http.get(f"/{file}").status_code == 200, file


def test_a_page_without_its_libraries_says_so(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_map, "LIBRARIES", {"uPlot": "missing.js", "world-atlas": "none.json"})
    page = service.http.get("/")
    assert page.status_code == 503
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<li>uPlot</li><li>world-atlas</li>" in page.text
    assert "make page" in page.text
    assert "<script" not in page.text
    check_files_of(page, service)
    assert service.http.get("/health").status_code == 200


def test_a_subscription_that_changes_its_kind_stops_nobody(tmp_path: Path) -> None:
    with serving(tmp_path / "state", pipeline=False) as service:
        point = {"lon": -73.98, "lat": 40.75, "keywords": ["coffee"], "k": 2}
        service.subscribe("calm", **COFFEE)
        service.subscribe("x", kind="nearest", **point)
        service.publish(thing("o1"))
        service.subscribe("x", kind="relevant", alpha=0.5, **point)
        service.publish(thing("o2"))
        service.start_pipeline()
        service.until(lambda: len(service.results("calm")) == 2)
        service.until(lambda: len(service.results("x")) == 3)
        listed = service.http.get("/v1/subscriptions/x/standing").json()["objects"]
        assert [one["object"] for one in listed] == ["o2", "o1"]
        assert all("score" in one for one in listed)


def test_what_was_another_keys_stays_theirs(tmp_path: Path) -> None:
    with serving(tmp_path / "state", require_keys=True) as service:
        assert service.gateway is not None
        bearers = {}
        for name in ("ann", "bob"):
            key, kept = make_key(name, ("subscribe", "publish"))
            assert service.gateway.ledger.add_key(kept)
            bearers[name] = {"authorization": f"Bearer {key}"}

        def call(who: str, method: str, path: str, **more: Any) -> httpx.Response:
            return service.http.request(method, path, headers=bearers[who], **more)

        secret = {"kind": "boolean", "where": "anns AND private"}
        assert call("ann", "put", "/v1/subscriptions/x", json=secret).status_code == 201
        seq = call("ann", "post", "/v1/objects", json=thing("o1", "anns private")).json()["seq"]
        path = "/v1/subscriptions/x/results"
        service.until(lambda: call("ann", "get", path).json()["results"])
        held = service.gateway.ledger.find("x")
        assert held is not None
        call("ann", "delete", "/v1/subscriptions/x")
        call("bob", "put", "/v1/subscriptions/x", json={"kind": "boolean", "where": "bobs"})
        call("bob", "post", "/v1/objects", json=thing("o2", "bobs"))
        service.until(lambda: call("bob", "get", path).json()["results"])
        # What a stream of hers would read on.
        read = service.gateway.ledger.results_of(held.account, 0, 10)
        assert [json.loads(entry.body)["object"] for entry in read] == ["o1"]
        body = {"object": {"seq": seq}, "subscription": {"id": "x"}}
        told = call("bob", "post", "/v1/explain", json=body)
        assert told.status_code == 200
        assert told.json()["matches"] is False
        assert "private" not in json.dumps(told.json()["where"])


def test_the_streams_of_a_key_end_with_it(tmp_path: Path) -> None:
    with serving(tmp_path / "state", require_keys=True) as service:
        assert service.gateway is not None
        key, kept = make_key("cat", ("subscribe",))
        assert service.gateway.ledger.add_key(kept)
        streams = [
            Events(service, path, authorization=f"Bearer {key}")
            for path in ("/v1/events", "/v1/live")
        ]
        streams[1].next()
        assert service.gateway.ledger.end_key("cat")
        for stream in streams:
            stream.read_to_end()
            stream.close()


def test_keys_that_cannot_be_read_stop_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the ledger hangs, known keys are taken and nobody waits who needs no key."""
    with serving(tmp_path / "state", require_keys=True, pipeline=False) as service:
        assert service.gateway is not None
        key, kept = make_key("ann", ("subscribe",))
        assert service.gateway.ledger.add_key(kept)
        bearer = {"authorization": f"Bearer {key}"}
        assert service.http.get("/v1/subscriptions", headers=bearer).status_code == 200
        usual, hangs, asked = service.gateway.ledger.all_keys, threading.Event(), []

        def hanging() -> Any:
            asked.append(1)
            assert hangs.wait(WAIT_S)
            return usual()

        monkeypatch.setattr(service.gateway.ledger, "all_keys", hanging)
        service.gateway.authenticator.invalidate()
        stranger: list[int] = []

        def call_strangely() -> None:
            told = httpx.get(
                f"{service.url}/v1/subscriptions",
                headers={"authorization": "Bearer pw_none"},
                timeout=WAIT_S,
            )
            stranger.append(told.status_code)

        waiting = [threading.Thread(target=call_strangely) for _ in range(3)]
        for thread in waiting:
            thread.start()
        service.until(lambda: asked)
        quick = httpx.Client(base_url=service.url, timeout=WAIT_S / 4)
        for _ in range(3):
            assert quick.get("/health").status_code == 200
            assert quick.get("/v1/subscriptions", headers=bearer).status_code == 200
        assert (stranger, len(asked)) == ([], 1)
        hangs.set()
        for thread in waiting:
            thread.join(WAIT_S)
        assert stranger == [401, 401, 401]
        quick.close()


def test_the_pipeline_is_starting_until_it_has_a_session(tmp_path: Path) -> None:
    """A beat that one has left that was killed does not count for the next."""
    with serving(tmp_path / "state", pipeline=False) as service:

        def status() -> str:
            told = service.http.get("/health")
            assert told.status_code == (503 if told.json()["pipeline"] == "away" else 200)
            return str(told.json()["pipeline"])

        assert status() == "starting"
        beaten = tmp_path / "state" / "PIPELINE"
        beaten.touch()
        assert status() == "running"
        begun, going = threading.Event(), threading.Event()

        class NoSession(Exception):
            pass

        def session() -> None:
            begun.set()
            assert going.wait(WAIT_S)
            raise NoSession

        def run() -> None:
            options = PipelineOptions(tmp_path / "state", Settings())
            with pytest.raises(NoSession):
                run_pipeline(options, threading.Event(), session)

        slow = threading.Thread(target=run)
        slow.start()
        assert begun.wait(WAIT_S)
        assert status() == "starting"
        going.set()
        slow.join(WAIT_S)
        service.start_pipeline()
        service.until(lambda: status() == "running")
        service.stop_pipeline()
        # Killed, it leaves its last beat behind.
        beaten.touch()
        os.utime(beaten, (time.time() - HEARTBEAT_TIMEOUT_S - 1,) * 2)
        assert status() == "starting"  # by one from before this gateway
        assert service.gateway is not None
        service.gateway._started_at = 0.0
        assert status() == "away"


def test_a_leap_is_refused_by_itself(service: Service) -> None:
    service.caught_up()
    lines = [thing("l1"), thing("l2", ts="9999-01-01T00:00:00Z"), thing("l3")]
    told = service.publish(*lines)
    assert (told["accepted"], told["rejected"]) == (2, 1)
    assert told["errors"][0]["line"] == 2
    assert "max_ahead" in told["errors"][0]["error"]
    body = "\n".join(json.dumps({"id": f"leap-{n}", **COFFEE} | extra)
                     for n, extra in enumerate([{"ts": "9999-01-01T00:00:00Z"}, {}]))  # fmt: skip
    headers = {"content-type": "application/x-ndjson"}
    told = service.http.post("/v1/subscriptions", content=body, headers=headers).json()
    assert (told["accepted"], told["rejected"]) == (1, 1)
    assert service.http.get("/v1/subscriptions/leap-0").status_code == 404
    assert service.http.get("/v1/subscriptions/leap-1").json()["seq"] == told["first_seq"]


def test_a_key_is_for_one_request(service: Service) -> None:
    headers = {"idempotency-key": "for-one"}
    first = service.http.put("/v1/subscriptions/ida", json=COFFEE, headers=headers)
    assert first.status_code == 201
    other = service.http.put("/v1/subscriptions/idb", json=COFFEE, headers=headers)
    assert other.status_code == 422
    again = {"idempotency-key": "end-it"}
    ends = [service.http.delete("/v1/subscriptions/ida", headers=again).json() for _ in range(2)]
    assert ends[0] == ends[1]
    many = service.http.post(
        "/v1/objects", content=b"\n" * 100_001, headers={"content-type": "application/x-ndjson"}
    )
    assert many.status_code == 413
