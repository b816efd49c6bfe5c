"""The service with its ledger in PostgreSQL: the same, and nothing lost when that goes away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placewire.serve.auth import make_key
from placewire.serve.webhooks.dispatcher import RetryPolicy
from postgres_server import PostgresServer
from receiver import Receiver
from service import Events, Service, serving

COFFEE = {"kind": "boolean", "where": "coffee"}


def thing(name: str, text: str = "coffee") -> dict[str, Any]:
    return {"id": name, "lon": 1.0, "lat": 2.0, "text": text}


def objects_of(service: Service, name: str) -> list[str]:
    found = service.results(name)
    assert [one["number"] for one in found] == list(range(1, len(found) + 1))
    return [one["result"]["object"] for one in found]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def test_results_streams_and_restarts(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.make_database("served")
    service = Service(tmp_path / "state", ledger=url)
    service.start_gateway()
    service.start_pipeline()
    service.subscribe("s", **COFFEE)
    service.subscribe("n", kind="nearest", lon=1, lat=2, keywords=["cocoa"], k=1)
    listening = Events(service, "/v1/events")
    service.publish(thing("o1"), thing("o2", "cocoa"))
    assert {listening.next()["data"]["subscription"] for _ in range(2)} == {"s", "n"}
    listening.close()
    headers = {"idempotency-key": "once"}
    first = service.http.post("/v1/objects", json=thing("o3"), headers=headers).json()
    again = service.http.post("/v1/objects", json=thing("o3"), headers=headers).json()
    assert first == again
    service.until(lambda: objects_of(service, "s") == ["o1", "o3"])
    service.stop_gateway()
    service.start_gateway()
    assert objects_of(service, "s") == ["o1", "o3"]
    standing = service.http.get("/v1/subscriptions/n/standing").json()
    assert [one["object"] for one in standing["objects"]] == ["o2"]
    assert not (tmp_path / "state" / "ledger.sqlite").exists()
    service.stop_pipeline()
    service.stop_gateway()
    assert not service.problems


def test_a_database_that_goes_away_costs_nothing_but_time(
    postgres: PostgresServer, receiver: Receiver, tmp_path: Path
) -> None:
    url = postgres.make_database("outage")
    retries = RetryPolicy(tries=5, first_s=0.05)
    options = {"ledger": url, "allow_private": True, "retries": retries, "require_keys": True}
    with serving(tmp_path / "state", **options) as service:
        secret, key = make_key("ann", ("publish", "subscribe"))
        service.gateway.ledger.add_key(key)
        service.http.headers["authorization"] = f"Bearer {secret}"
        service.subscribe("s", **COFFEE)
        wish = {"webhook": {"url": receiver.url()}}
        service.http.put("/v1/subscriptions/s/delivery", json=wish)
        service.publish(thing("before"))
        service.until(lambda: len(receiver.got) == 1)
        postgres.stop()
        try:
            # What needs the ledger is refused in clear words, and what needs it not is accepted.
            for method, path, body in (
                ("get", "/v1/subscriptions/s", None),
                ("get", "/v1/subscriptions/s/results", None),
                ("get", "/v1/subscriptions/s/events", None),
                ("put", "/v1/subscriptions/t", COFFEE),
                ("put", "/v1/subscriptions/s/delivery", wish),
                ("delete", "/v1/subscriptions/s", None),
            ):
                reply = service.http.request(method, path, json=body)
                assert reply.status_code == 503, (method, path, reply.text)
                assert "ledger: PostgreSQL" in reply.json()["error"]
                assert reply.headers["retry-after"] == "1"
            for number in range(50):
                assert service.publish(thing(f"o{number}"))["accepted"] == 1
            keyed = service.http.post(
                "/v1/objects", json=thing("keyed"), headers={"idempotency-key": "k"}
            )
            assert keyed.status_code == 503
            service.until(lambda: "PostgreSQL" in service.http.get("/health").json()["status"])
            assert service.http.get("/health").status_code == 503
            assert "placewire_ledger_up 0" in service.http.get("/metrics").text
        finally:
            postgres.start()
        names = ["before", *[f"o{number}" for number in range(50)]]
        service.until(lambda: service.http.get("/health").status_code == 200)
        service.until(lambda: objects_of(service, "s") == names)
        service.until(lambda: sum(len(one.numbers) for one in receiver.got) >= 51)
        assert [n for one in receiver.got for n in one.numbers] == list(range(1, 52))
        again = service.http.post(
            "/v1/objects", json=thing("keyed"), headers={"idempotency-key": "k"}
        )
        assert again.status_code == 202
        assert service.subscribe("t", **COFFEE)["replaced"] is False


def test_a_pipeline_goes_on_while_the_ledger_is_away(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """The recorder keeps its cursor: no batch is deleted before it is in the ledger."""
    with serving(tmp_path / "state", ledger=postgres.make_database("waiting")) as service:
        service.subscribe("s", **COFFEE)
        service.publish(thing("o0"))
        service.until(lambda: objects_of(service, "s") == ["o0"])
        postgres.stop()
        try:
            for number in range(1, 30):
                service.publish(thing(f"o{number}"))
                if number % 10 == 0:
                    service.until(lambda: service.gateway.recorder.failed)
        finally:
            postgres.start()
        expected = [f"o{number}" for number in range(30)]
        service.until(lambda: objects_of(service, "s") == expected)
        service.caught_up()
        assert service.gateway.recorder.failed == ""
