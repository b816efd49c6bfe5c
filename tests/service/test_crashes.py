"""The service can be trusted: killed, crashed, out of space, it loses and repeats nothing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placewire.cli.startup import ready_kernels
from placewire.serve import group_commit
from placewire.serve.group_commit import GroupCommitter, IdempotencyKey, WriteRequest, read_change
from placewire.serve.ledger import Ledger, open_ledger, recorder
from placewire.serve.ledger.recorder import ResultRecorder
from placewire.storage import journal as journalwriter
from placewire.storage.journal import JournalWriter, read_entries
from service import COFFEE, Events, results_of_log, serving, thing
from waits import WAIT_S


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    ready_kernels()


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
        reply = await asyncio.wait_for(committer.commit(request), timeout=WAIT_S)
        return {name: reply[name] for name in ("seq", "replaced")}

    async def crash() -> None:
        writer, ledger = open_all()
        committer = GroupCommitter(writer, ledger)
        assert await write(committer, first, "1") == {"seq": 0, "replaced": False}
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, patched(getattr(owner, name)))
            asked = asyncio.create_task(write(committer, second, "2"))
            await asyncio.to_thread(committer._thread.join, WAIT_S)
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
                keeping.join(WAIT_S)
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
