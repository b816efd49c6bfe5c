"""Ids that change hands: whose a result is, who may change what, and what strangers hear."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from placewire.serve.auth import make_key
from placewire.serve.ledger import Ledger
from postgres_server import PostgresServer
from service import Events, Service, serving

ROLES = {"ann": ("subscribe", "publish"), "bob": ("subscribe", "publish"), "root": ("admin",)}
COFFEE = {"kind": "boolean", "where": "coffee"}
TEA = {"kind": "boolean", "where": "tea"}

Call = Callable[..., httpx.Response]


def thing(name: str, text: str = "coffee and tea", **more: Any) -> dict[str, Any]:
    return {"id": name, "lon": 1.0, "lat": 2.0, "text": text, **more}


@contextmanager
def keyed(root: Path, **options: Any) -> Iterator[tuple[Service, Call]]:
    """A service with keys, and what calls it by the name of one."""
    with serving(root, require_keys=True, **options) as service:
        assert service.gateway is not None
        keys = {}
        for name, roles in ROLES.items():
            keys[name], kept = make_key(name, roles)
            assert service.gateway.ledger.add_key(kept)

        def call(who: str, method: str, path: str, **more: Any) -> httpx.Response:
            headers = {"authorization": f"Bearer {keys[who]}"} | more.pop("headers", {})
            return service.http.request(method, path, headers=headers, **more)

        yield service, call


def objects(call: Call, who: str, name: str) -> list[str]:
    """The objects of one's results, which are numbered without a gap."""
    found = call(who, "get", f"/v1/subscriptions/{name}/results").json()["results"]
    assert [one["number"] for one in found] == [*range(1, len(found) + 1)]
    return [one["result"]["object"] for one in found]


@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_late_results_go_to_whoever_had_the_id(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The pipeline comes up when the id has gone from ann to bob and back; after a restart."""
    ledger = ""
    if where == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        ledger = server.make_database("owners")
    with keyed(tmp_path / "state", pipeline=False, ledger=ledger) as (service, call):
        path = "/v1/subscriptions/x"
        for who, wish in (("ann", COFFEE), ("bob", TEA), ("ann", TEA)):
            assert call(who, "put", path, json=wish).status_code == 201
            for number in range(2):
                name = f"{who}-{wish['where']}-{number}"
                assert call(who, "post", "/v1/objects", json=thing(name)).status_code == 202
            if wish is not TEA or who != "ann":
                assert call(who, "delete", path).status_code == 200
        service.stop_gateway()
        service.start_gateway()
        service.start_pipeline()
        service.caught_up()
        anns = ["ann-coffee-0", "ann-coffee-1", "ann-tea-0", "ann-tea-1"]
        assert objects(call, "ann", "x") == anns
        assert objects(call, "bob", "x") == ["bob-tea-0", "bob-tea-1"]
        shown = [call(who, "get", path).json() for who in ROLES]
        assert [(one["owner"], one["status"], one["results"]) for one in shown] == [
            ("ann", "live", 4), ("bob", "ended", 2), ("ann", "live", 4),
        ]  # fmt: skip
        assert service.gateway is not None
        assert service.gateway.ledger.counts()["strays"] == 0


def test_a_stream_goes_on_with_what_its_owner_had(tmp_path: Path) -> None:
    with keyed(tmp_path / "state", pipeline=False) as (service, call):
        assert call("ann", "put", "/v1/subscriptions/x", json=COFFEE).status_code == 201
        call("ann", "post", "/v1/objects", json=thing("anns"))
        key = make_key("ann", ("subscribe",))
        assert service.gateway is not None
        service.gateway.ledger.end_key("ann")
        service.gateway.ledger.add_key(key[1])
        service.gateway.authenticator.invalidate()
        bearer = f"Bearer {key[0]}"
        streams = [
            Events(service, path, authorization=bearer)
            for path in ("/v1/subscriptions/x/events", "/v1/events")
        ]
        end = service.http.delete("/v1/subscriptions/x", headers={"authorization": bearer})
        assert end.status_code == 200
        assert call("bob", "put", "/v1/subscriptions/x", json=COFFEE).status_code == 201
        call("bob", "post", "/v1/objects", json=thing("bobs"))
        service.start_pipeline()
        service.caught_up()
        for stream in streams:
            assert stream.next()["data"]["result"]["object"] == "anns"
            stream.close()
        assert objects(call, "bob", "x") == ["bobs"]


def test_owners_are_known_after_a_crash_before_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an admin replaced stays its owner's: the journal says so where its lines cannot."""
    with keyed(tmp_path / "state", pipeline=False) as (service, call):
        assert call("ann", "put", "/v1/subscriptions/x", json=COFFEE).status_code == 201

        def fail(*_: Any) -> None:
            raise OSError("not now")

        key = {"idempotency-key": "once"}
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "apply", fail)
            late = call("root", "put", "/v1/subscriptions/x", json=TEA, headers=key)
            assert (late.status_code, "written as 1" in late.text) == (503, True)
            service.stop_gateway()
        service.start_gateway()
        again = call("root", "put", "/v1/subscriptions/x", json=TEA, headers=key)
        assert (again.status_code, again.json()["seq"]) == (200, 1)
        shown = call("ann", "get", "/v1/subscriptions/x").json()
        assert (shown["owner"], shown["subscription"]["where"]) == ("ann", "tea")


def test_an_admin_replaces_and_ends_in_the_owners_name(tmp_path: Path) -> None:
    with keyed(tmp_path / "state") as (service, call):
        assert call("ann", "put", "/v1/subscriptions/x", json=COFFEE).status_code == 201
        replaced = call("root", "put", "/v1/subscriptions/x", json=TEA)
        assert (replaced.status_code, replaced.json()["replaced"]) == (200, True)
        call("bob", "post", "/v1/objects", json=thing("o1", "tea"))
        service.until(lambda: objects(call, "ann", "x"))
        shown = call("root", "get", "/v1/subscriptions/x").json()
        assert (shown["owner"], shown["subscription"]["where"]) == ("ann", "tea")
        lines = '{"id":"x","kind":"boolean","where":"a"}\n{"id":"y","kind":"boolean","where":"b"}'
        headers = {"content-type": "application/x-ndjson"}
        many = call("root", "post", "/v1/subscriptions", content=lines, headers=headers)
        assert many.json()["accepted"] == 2
        owners = [call("root", "get", f"/v1/subscriptions/{id}").json()["owner"] for id in "xy"]
        assert owners == ["ann", "root"]
        assert call("ann", "get", "/v1/subscriptions/y").status_code == 404
        assert call("root", "delete", "/v1/subscriptions/x").status_code == 200
        assert call("ann", "get", "/v1/subscriptions/x").json()["status"] == "ended"
        # What has ended is nobody's: the admin who makes it anew has it.
        assert call("root", "put", "/v1/subscriptions/x", json=TEA).status_code == 201
        assert call("root", "get", "/v1/subscriptions/x").json()["owner"] == "root"


STRANGERS = [
    ("get", ""), ("delete", ""), ("get", "/results"), ("get", "/standing"), ("get", "/events"),
    ("get", "/delivery"), ("delete", "/delivery"), ("get", "/delivery/dead"),
    ("post", "/delivery/dead/retry"),
]  # fmt: skip


def test_strangers_are_not_told_whether_an_id_is_there(tmp_path: Path) -> None:
    with keyed(tmp_path / "state", pipeline=False) as (_, call):
        assert call("ann", "put", "/v1/subscriptions/hers", json=COFFEE).status_code == 201
        for method, end in STRANGERS:
            told = [call("bob", method, f"/v1/subscriptions/{id}{end}") for id in ("hers", "none")]
            assert [one.status_code for one in told] == [404, 404], (method, end)
            assert told[0].text.replace("hers", "none") == told[1].text
        hook = {"webhook": {"url": "https://receiver.example/hook"}}
        assert call("bob", "put", "/v1/subscriptions/hers/delivery", json=hook).status_code == 404
        pair = {"object": thing("o"), "subscription": {"id": "hers"}}
        assert call("bob", "post", "/v1/explain", json=pair).status_code == 404
        # That an id is taken must be said to who wants it, and no more than that.
        for taken in (
            call("bob", "put", "/v1/subscriptions/hers", json=TEA),
            call("bob", "post", "/v1/subscriptions", json=TEA | {"id": "hers"}),
        ):
            assert taken.status_code == 409
            assert taken.json() == {"error": "subscription 'hers': the id is taken, choose another"}


def test_an_expired_id_may_be_taken(tmp_path: Path) -> None:
    start, later, end = (f"2026-03-01T12:0{minute}:00Z" for minute in (0, 4, 5))
    with keyed(tmp_path / "state") as (service, call):
        wish = COFFEE | {"ts": start, "expires": end}
        assert call("ann", "put", "/v1/subscriptions/x", json=wish).status_code == 201
        call("ann", "post", "/v1/objects", json=thing("before", ts=later))
        early = call("bob", "put", "/v1/subscriptions/x", json=COFFEE | {"ts": later})
        assert early.status_code == 409
        made = call("bob", "put", "/v1/subscriptions/x", json=COFFEE | {"ts": end})
        assert (made.status_code, made.json()["replaced"]) == (201, False)
        call("ann", "post", "/v1/objects", json=thing("after", ts=end))
        service.caught_up()
        assert objects(call, "ann", "x") == ["before"]
        assert objects(call, "bob", "x") == ["after"]
        assert call("ann", "get", "/v1/subscriptions/x").json()["status"] == "expired"
        assert call("ann", "delete", "/v1/subscriptions/x").status_code == 404
        assert call("bob", "get", "/v1/subscriptions/x").json()["status"] == "live"
        # A request that came to nothing has not moved the clock by which that is decided.
        wish = TEA | {"ts": later, "expires": "2026-03-01T12:06:00Z"}
        assert call("bob", "put", "/v1/subscriptions/x", json=wish).status_code == 200
        late = TEA | {"ts": "2026-03-01T12:06:00Z"}
        headers = {"content-type": "application/x-ndjson"}
        assert call("ann", "put", "/v1/subscriptions/x", json=late | {"k": 1}).status_code == 422
        assert call("ann", "put", "/v1/subscriptions/x", json=TEA | {"ts": end}).status_code == 409
        lines = "\n".join(
            ['{"id":"z","kind":"boolean","where":"a","ts":"2026-03-01T12:06:00Z"}',
             '{"id":"x","kind":"boolean","where":"a","ts":"2026-03-01T12:06:01Z"}']
        )  # fmt: skip
        many = call("ann", "post", "/v1/subscriptions", content=lines, headers=headers)
        assert many.status_code == 201
        assert call("root", "get", "/v1/subscriptions/x").json()["owner"] == "ann"


def test_what_needs_no_key_names_nobody(tmp_path: Path) -> None:
    """Neither ids nor texts, names of keys nor places of files."""
    with keyed(tmp_path / "state") as (service, call):
        wish = {"kind": "boolean", "where": "coffee"}
        assert call("ann", "put", "/v1/subscriptions/hers-alone", json=wish).status_code == 201
        call("ann", "post", "/v1/objects", json=thing("her-object", "her coffee"))
        call("bob", "get", "/v1/subscriptions/hers-alone")
        service.until(lambda: objects(call, "ann", "hers-alone"))
        hook = {"webhook": {"url": "https://her.receiver.example/hook"}}
        assert call("ann", "put", "/v1/subscriptions/hers-alone/delivery", json=hook).is_success
        for path in ("/health", "/metrics", "/openapi.json"):
            told = service.http.get(path, headers={"host": "anybody.example"})
            assert told.status_code == 200, path
            for word in ("hers-alone", "her-object", "her coffee", "her.receiver.example", "ann",
                         str(tmp_path)):  # fmt: skip
                assert not re.search(rf"\b{re.escape(word)}\b", told.text), (path, word)


def explained(call: Call, who: str, thing: Any, name: str = "r") -> tuple[bool | None, str]:
    body = {"object": thing, "subscription": {"id": name}}
    told = call(who, "post", "/v1/explain", json=body)
    assert told.status_code == 200, told.text
    assert call(who, "post", "/explain", json=body).json() == told.json()
    return told.json()["matches"], told.json()["interval"]["why"]


def test_explanations_are_of_what_the_id_was_when_the_object_came(tmp_path: Path) -> None:
    apple, pear = ({"kind": "boolean", "where": word} for word in ("apple", "pear"))
    with keyed(tmp_path / "state") as (service, call):
        path = "/v1/subscriptions/r"

        def put(who: str, wish: dict[str, Any]) -> None:
            assert call(who, "put", path, json=wish).is_success
            service.caught_up()

        def publish(name: str) -> None:
            reply = call("ann", "post", "/v1/objects", json=thing(name, "an apple"))
            assert reply.status_code == 202
            service.caught_up()

        put("ann", apple)  # 0
        publish("ra")  # 1
        put("ann", pear)  # 2
        publish("rp")  # 3
        put("ann", apple)  # 4
        assert call("ann", "delete", path).is_success  # 5
        publish("later")  # 6
        assert explained(call, "ann", "ra") == (
            True, "it was live from seq 0 until event 2 replaced it",
        )  # fmt: skip
        assert explained(call, "ann", "rp")[0] is False
        ended = (False, "it was ended by event 5")
        assert explained(call, "ann", "later") == ended
        assert explained(call, "ann", thing("next", "apple")) == ended
        put("bob", apple)  # 7
        publish("bobs")  # 8
        not_yet = (False, "it was not yet subscribed: it began at seq 7")
        assert explained(call, "bob", "ra") == not_yet
        assert explained(call, "bob", "bobs") == (True, "it has been live since seq 7")
        assert explained(call, "ann", "bobs") == ended
        assert explained(call, "root", "bobs")[0] is True
        assert explained(call, "root", "ra")[0] is True
        # What the ledger has dropped with the journal is not guessed at.
        assert service.gateway is not None
        service.gateway.ledger.purge_ended(5, 0)
        matches, why = explained(call, "ann", "ra")
        assert matches is None
        assert "changes are known from seq 5 on" in why
        assert explained(call, "ann", "later") == ended
