"""The service can be trusted: killed, crashed, out of space, it loses and repeats nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from placewire import run
from placewire.cli.startup import ready_kernels
from placewire.serve import group_commit
from placewire.serve.group_commit import GroupCommitter, IdempotencyKey, WriteRequest, read_change
from placewire.serve.ledger import Ledger, open_ledger, recorder
from placewire.serve.ledger.recorder import ResultRecorder
from placewire.storage import journal as journalwriter
from placewire.storage.journal import JournalWriter, read_entries
from processes import Consumer, Processes, command_of, until
from service import Events, Service, serving
from test_serve import COFFEE, thing

NEAREST = {"kind": "nearest", "lon": -73.98, "lat": 40.75, "keywords": ["coffee"], "k": 3}
LINES = {"content_type": "application/x-ndjson"}


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    ready_kernels()


def results_of_log(root: Path) -> list[dict[str, Any]]:
    """What the journal gives as a log."""
    lines = [line for _, line in read_entries(root / "journal", 0)]
    return [result for result in run(lines).results if "subscription" in result]


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


# Crashed, at every step.


class Crash(BaseException):
    """The end of a thread, as if of its process."""


def crash_after(usual: Callable[..., Any], times: int = 1) -> Callable[..., Any]:
    """A function that does its work, and then, the last of some times, crashes."""
    left = [times]

    def crashing(*args: Any, **more: Any) -> Any:
        done = usual(*args, **more)
        left[0] -= 1
        if not left[0]:
            raise Crash
        return done

    return crashing


def crash_before(*_: Any, **__: Any) -> Any:
    raise Crash


def half_written(descriptor: int, content: bytes) -> None:
    os.write(descriptor, content[: len(content) // 2])
    raise Crash


STEPS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "half of the notes": (journalwriter, "write_all", lambda _: half_written),
    "notes, and no lines": (journalwriter, "write_all", crash_after),
    "all written, and not known in the ledger": (Ledger, "apply", lambda _: crash_before),
    "known, and not published": (JournalWriter, "publish", lambda _: crash_before),
    "published, and not replied": (group_commit, "resolve", lambda _: crash_before),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_write_that_crashes_is_made_once_when_it_is_tried_again(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, patched = STEPS[step]
    ts = "2026-03-01T12:00:00Z"
    first, second = (
        json.dumps({"type": "subscribe", "id": one, "ts": ts, **COFFEE}).encode() for one in "ab"
    )

    def open_all() -> tuple[JournalWriter, Ledger]:
        return JournalWriter(tmp_path / "journal"), open_ledger(tmp_path / "ledger.sqlite")

    async def write(committer: GroupCommitter, line: bytes, key: str) -> dict[str, Any]:
        change = read_change(line)
        assert change is not None
        request = WriteRequest([line], "ann", [change], IdempotencyKey(key, key))
        reply = await asyncio.wait_for(committer.commit(request), timeout=10)
        return {name: reply[name] for name in ("seq", "replaced")}

    async def crash() -> None:
        writer, ledger = open_all()
        committer = GroupCommitter(writer, ledger)
        assert await write(committer, first, "1") == {"seq": 0, "replaced": False}
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, patched(getattr(owner, name)))
            asked = asyncio.create_task(write(committer, second, "2"))
            await asyncio.to_thread(committer._thread.join, 10)
            assert not committer._thread.is_alive()
            asked.cancel()
        writer.close()
        ledger.close()

    async def go_on() -> None:
        writer, ledger = open_all()
        committer = GroupCommitter(writer, ledger)
        assert await write(committer, second, "2") == {"seq": 1, "replaced": False}
        assert await write(committer, first, "1") == {"seq": 0, "replaced": False}
        assert [line for _, line in read_entries(writer.folder, 0)] == [first, second]
        held = [(one.id, one.owner, one.seq) for one in ledger.list_subscriptions("ann", "", 10)]
        assert held == [("a", "ann", 0), ("b", "ann", 1)]
        assert writer.mark.get() == writer.end_byte
        committer.close()
        ledger.close()

    asyncio.run(crash())
    asyncio.run(go_on())


TAKES: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "before the ledger has it": (Ledger, "record", lambda _: crash_before),
    "when the ledger has it": (Ledger, "record", crash_after),
    "before the cursor says so": (recorder, "write_cursor", lambda _: crash_before),
    "when the cursor says so": (recorder, "write_cursor", crash_after),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_results_are_taken_once_wherever_it_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path / "state") as service:
        service.subscribe("kept", **COFFEE)
        for number, (owner, name, patched) in enumerate(TAKES.values()):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, patched(getattr(owner, name)))
                service.publish(thing(f"o{number}"))
                assert service.gateway is not None
                keeping = service.gateway.recorder._thread
                keeping.join(60)
                assert not keeping.is_alive()
                service.publish(thing(f"p{number}"))
                service.stop_gateway()
            service.start_gateway()
            service.until(lambda number=number: len(service.results("kept")) == 2 * number + 2)
        kept = service.results("kept")
    assert [one["number"] for one in kept] == [*range(1, 2 * len(TAKES) + 1)]
    assert [one["result"] for one in kept] == results_of_log(tmp_path / "state")


def test_those_who_listen_miss_nothing_when_keeping_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_after(usual: Callable[..., Any]) -> Callable[..., Any]:
        left = [1]

        def failing(*args: Any) -> Any:
            done = usual(*args)
            if left:
                left.pop()
                raise OSError("nobody knows whether that was kept")
            return done

        return failing

    with serving(tmp_path / "state") as service:
        service.subscribe("kept", **COFFEE)
        listening = Events(service, "/v1/events")
        for number, (owner, name) in enumerate(((recorder, "write_cursor"), (Ledger, "record"))):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, fail_after(getattr(owner, name)))
                service.publish(thing(f"o{number}"))
                assert listening.next()["data"]["result"]["object"] == f"o{number}"
        listening.close()


def test_a_ledger_that_fails_for_a_while_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise OSError("disk I/O error")

    with serving(tmp_path / "state") as service:
        service.subscribe("kept", **COFFEE)
        headers = {"idempotency-key": "once"}
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "apply", failing)
            for _ in range(2):
                reply = service.http.post("/v1/objects", json=thing("o1"), headers=headers)
                assert reply.status_code == 503
                assert "disk I/O error; written as 1" in reply.json()["error"]
            assert service.http.get("/health").status_code == 503
            wish = service.http.put("/v1/subscriptions/late", json=COFFEE)
            assert wish.status_code == 503
        service.until(lambda: service.http.get("/health").status_code == 200)
        again = service.http.post("/v1/objects", json=thing("o1"), headers=headers)
        assert (again.status_code, again.json()) == (202, {"seq": 1})
        assert service.http.get("/v1/subscriptions/late").json()["seq"] == 2
        service.publish(thing("o2"))
        service.until(lambda: len(service.results("kept")) == 2)
        assert service.http.get("/health").json()["seq"] == 4


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


def test_a_keeper_without_space_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with serving(tmp_path / "state") as service:
        service.subscribe("kept", **COFFEE)
        with monkeypatch.context() as patch:
            patch.setattr(ResultRecorder, "_record", full)
            service.publish(thing("o1"))
            health = service.until(
                lambda: (found := service.http.get("/health")).status_code == 503 and found
            )
            assert "No space left" in health.json()["status"]
        service.until(lambda: len(service.results("kept")) == 1)
        service.until(lambda: service.http.get("/health").status_code == 200)
