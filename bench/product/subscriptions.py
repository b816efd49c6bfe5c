"""Subscriptions that come and go: bulk loading, and churn while objects are matched."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.workload import Workload, object_lines, subscribe_events, write_log
from placewire.batch.coordinator import Coordinator
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.spark.session import make_session
from placewire.spark.stages import replay_on_spark
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest


def measure_loading(
    setup: Setup, sizes: tuple[int, ...] = (1_000_000, 5_000_000), batch_rows: int = 500_000
) -> Figures:
    """Subscriptions as events through Spark into the state, then reopened, and their size."""
    rows = []
    session = make_session("local[2]")
    for subscriptions in sizes:
        log = setup.folder / "subscriptions.jsonl"
        write_log(setup.workload(1, subscriptions), log)
        state = StateDir(setup.folder / f"state-{subscriptions}")
        coordinator = Coordinator(state, Settings(), identify_log(log), "shared", 2)
        started = time.perf_counter()
        replay_on_spark(
            session,
            coordinator,
            LogSource(str(log)),
            batch_rows=batch_rows,
            workers=2,
            after=lambda _: None,
        )
        loaded_s = time.perf_counter() - started
        segments = len(coordinator.latest.segments)
        coordinator.close()
        coordinator.collect_garbage()
        on_disk = sum(
            state.file(name).stat().st_size
            for entry in coordinator.latest.segments
            for name in (entry.name, entry.dead)
            if name is not None
        )
        started = time.perf_counter()
        again = Coordinator(state, Settings(), identify_log(log), "shared", 2)
        live = sum(segment.rows.total for segment, _ in again.live.pairs())
        reopened_s = time.perf_counter() - started
        again.close()
        assert live >= subscriptions
        rows.append(
            (
                subscriptions,
                loaded_s,
                subscriptions / loaded_s,
                segments,
                reopened_s,
                on_disk / subscriptions,
            )
        )
    session.stop()
    yield Table(
        "loading",
        (
            "subscriptions",
            "loaded, s",
            "subscribes/s",
            "segments",
            "reopened, s",
            "bytes a subscription",
        ),
        rows,
    )


TS = "2026-01-01T00:00:00Z"


class ChurnBatch(NamedTuple):
    """One batch of the churn as measured."""

    seconds: float
    segments: int
    live: int


class Mix(NamedTuple):
    """Standing subscriptions; subscribes, as many unsubscribes, and objects of each batch."""

    standing: int
    changes: int
    objects: int


def write_churn(workload: Workload, batches: int, path: Path, mix: Mix) -> None:
    """The standing subscriptions, then batches of objects, subscribes and unsubscribes mixed."""
    lines = [
        msgspec.json.encode(event)
        for batch in workload.subscriptions.to_batches(max_chunksize=50_000)
        for event in subscribe_events(batch, TS)
    ]
    objects = [line for block in object_lines(workload) for line in block.splitlines()]
    with open(path, "wb") as log:
        log.write(b"\n".join(lines[: mix.standing]) + b"\n")
        for number in range(batches):
            come = lines[mix.standing + number * mix.changes :][: mix.changes]
            seen = objects[number * mix.objects :][: mix.objects]
            mixed: list[bytes] = []
            step = mix.changes // mix.objects + 1
            for k, line in enumerate(come):
                mixed.append(line)
                gone = f"s{number * mix.changes + k}"
                mixed.append(
                    b'{"type":"unsubscribe","id":"%b","ts":"%b"}' % (gone.encode(), TS.encode())
                )
                if k % step == 0 and k // step < len(seen):
                    mixed.append(seen[k // step])
            mixed += seen[len(range(0, mix.changes, step)) :]
            log.write(b"\n".join(mixed) + b"\n")


def measure_churn(
    setup: Setup,
    batches: int = 14,
    standing: int = 500_000,
    changes: int = 100_000,
    objects: int = 40_000,
) -> Figures:
    """Seconds and segments through the churn; the changes a second that were sustained."""
    workload = setup.workload(objects * batches, standing + changes * batches)
    log = setup.folder / "churn.jsonl"
    write_churn(workload, batches, log, Mix(standing, changes, objects))
    session = make_session("local[2]")
    coordinator = Coordinator(
        StateDir(setup.folder / "churn"), Settings(), identify_log(log), "shared", 2
    )
    seen: list[ChurnBatch] = []
    last = time.perf_counter()

    def after(manifest: Manifest) -> None:
        nonlocal last
        now = time.perf_counter()
        live = sum(s.rows - s.ended for s in manifest.segments)
        seen.append(ChurnBatch(now - last, len(manifest.segments), live))
        last = now

    rows = 2 * changes + objects
    replay_on_spark(
        session, coordinator, LogSource(str(log)), batch_rows=rows, workers=2, after=after
    )
    coordinator.close()
    session.stop()
    churning = seen[-batches + 2 :]
    table = []
    third = len(churning) // 3
    for name, part in (
        ("first third", churning[:third]),
        ("middle third", churning[third : 2 * third]),
        ("last third", churning[2 * third :]),
    ):
        seconds = sum(b.seconds for b in part) / len(part)
        table.append(
            (
                name,
                changes / seconds,
                changes / seconds,
                objects / seconds,
                max(b.seconds for b in part),
                max(b.segments for b in part),
                part[-1].live,
            )
        )
    yield Table(
        "churn",
        (
            "part of the churn",
            "subscribes/s",
            "unsubscribes/s",
            "objects/s beside",
            "slowest batch, s",
            "most segments",
            "live subscriptions",
        ),
        table,
    )
    yield LinePlot(
        "churn",
        {"seconds a batch": [(k + 1, b.seconds) for k, b in enumerate(churning)],
         "segments": [(k + 1, b.segments) for k, b in enumerate(churning)]},
        x_label="batch",
        y_label="seconds, segments",
    )  # fmt: skip
