"""The service in child processes: killed, or out of disk space."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from placewire.storage.journal import read_entries
from processes import Consumer, Processes, command_of
from service import COFFEE, Service, results_of_log, thing
from waits import until

NEAREST = {"kind": "nearest", "lon": -73.98, "lat": 40.75, "keywords": ["coffee"], "k": 3}
LINES = {"content_type": "application/x-ndjson"}


# Killed.


def test_killed_again_and_again_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    root = tmp_path / "state"
    service = Processes(root)
    consumers = [Consumer(service, path) for path in ("/v1/events", "/v1/subscriptions/a/events")]
    published = 0
    stop = threading.Event()

    def publish() -> None:
        nonlocal published
        while not stop.is_set():
            # Some one by one, some together; each is sent until it is answered.
            some = [thing(f"o{published + n}", lat=40.75 + published % 7 / 1e4) for n in range(5)]
            lines = "\n".join(json.dumps(one) for one in some)
            service.insist("POST", "/v1/objects", lines, idempotency_key=f"b{published}", **LINES)
            published += 5
            one = thing(f"o{published}")
            service.insist("POST", "/v1/objects", one, idempotency_key=f"k{published}")
            published += 1

    publisher = threading.Thread(target=publish, daemon=True)
    try:
        for name, wish in (("a", COFFEE), ("b", NEAREST)):
            service.insist("PUT", f"/v1/subscriptions/{name}", wish, idempotency_key=name)
        publisher.start()
        for consumer in consumers:
            consumer.start()
        for part in ("gateway", "pipeline", "gateway"):
            seen = len(consumers[0].got)
            until(lambda seen=seen: len(consumers[0].got) > seen + 10, "results come")
            service.kill(part)
        seen = len(consumers[0].got)
        until(lambda: len(consumers[0].got) > seen + 10, "results come again")

        # The supervisor goes: its children end by themselves, and a new one goes on.
        children = [service.child(part) for part in ("gateway", "pipeline")]
        service.supervisor.kill()
        service.supervisor.wait()
        until(lambda: not any(b"--held" in command_of(pid or 0) for pid in children), "both end")
        service.start()
        stop.set()
        publisher.join(120)
        service.caught_up()
        expected = results_of_log(root)
        of_a = [result for result in expected if result["subscription"] == "a"]
        assert len(of_a) == published
        until(lambda: len(consumers[0].got) >= len(expected), "all results are there")
        until(lambda: len(consumers[1].got) >= len(of_a), "all results of one are there")
        service.supervisor.send_signal(signal.SIGTERM)
        assert service.supervisor.wait(60) == 0
    finally:
        stop.set()
        for consumer in consumers:
            consumer.done = True
        service.end()
    everything, one = ([got["result"] for got in consumer.got] for consumer in consumers)
    assert everything == expected
    assert one == of_a
    assert [got["number"] for got in consumers[1].got] == [*range(1, len(of_a) + 1)]
    assert consumers[0].joined >= 3
    names = [json.loads(line)["id"] for _, line in read_entries(root / "journal", 0)]
    assert sorted(names) == sorted({"a", "b"} | {f"o{n}" for n in range(published)})
    assert "Traceback" not in service.said.read_text()


# Out of space.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_said_and_forgotten_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    accepted: list[str] = []
    service = Service(small_disk / "state")
    service.start_gateway()
    service.subscribe("kept", **COFFEE)
    ballast.write_bytes(bytes(700_000))
    for number in range(400):
        one = thing(f"o{number}", "free coffee " * 400)
        key = {"idempotency-key": f"k{number}"} if number % 2 else {}
        reply = service.http.post("/v1/objects", json=one, headers=key)
        if reply.status_code != 202:
            break
        accepted.append(one["id"])
    assert 3 < len(accepted) < 400
    assert reply.status_code == 503
    assert any(why in reply.text for why in ("No space left", "is full")), reply.text
    full = service.http.put("/v1/subscriptions/late", json=COFFEE, headers={"idempotency-key": "l"})
    key_refused = service.http.post("/v1/keys", json={"name": "k" * 60, "roles": ["admin"]})
    assert {full.status_code, key_refused.status_code} <= {503, 201}
    health = service.http.get("/health")
    assert health.status_code == 503
    assert health.json()["status"] != "ok"
    assert service.http.get("/v1/subscriptions/kept").status_code == 200

    ballast.unlink()
    service.until(lambda: service.http.get("/health").status_code == 200)
    for headers in ({"idempotency-key": "l"}, {"idempotency-key": "l"}):
        late = service.http.put("/v1/subscriptions/late", json=COFFEE, headers=headers)
        assert late.status_code == 201
    assert service.http.post("/v1/objects", json=thing("after")).status_code == 202
    lines = [json.loads(line) for _, line in read_entries(small_disk / "state" / "journal", 0)]
    found = [line["id"] for line in lines if line["type"] == "object"]
    written_late = [one for one in found if one not in {*accepted, "after"}]
    assert [one for one in found if one in accepted] == accepted
    assert len(written_late) <= 1  # one that the ledger could not take, and said so
    assert [line["id"] for line in lines if line["type"] == "subscribe"] == ["kept", "late"]
    service.stop_gateway()
    service.start_gateway()
    assert service.http.get("/v1/subscriptions/late").json()["status"] == "live"
    service.stop_gateway()
    assert not service.problems
