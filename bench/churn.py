"""Churn: subscriptions come and go by the tens of thousands a second while objects are matched."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.settings import Choice
from bench.tables import draw_lines, save_table
from bench.workload import Workload, object_lines, subscribe_events
from placewire.batch.coordinator import Coordinator
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest

STANDING = 500_000
CHANGES = 100_000  # subscribes, and as many unsubscribes, in each batch
OBJECTS = 40_000  # in each batch, among the changes
TS = "2026-01-01T00:00:00Z"


class Batch(NamedTuple):
    """One batch of the churn as measured."""

    seconds: float
    segments: int
    live: int


def write_churn(workload: Workload, batches: int, path: Path) -> None:
    """The standing subscriptions, then batches of objects, subscribes and unsubscribes mixed."""
    lines = [
        msgspec.json.encode(event)
        for batch in workload.subscriptions.to_batches(max_chunksize=50_000)
        for event in subscribe_events(batch, TS)
    ]
    objects = [line for block in object_lines(workload) for line in block.splitlines()]
    with open(path, "wb") as log:
        log.write(b"\n".join(lines[:STANDING]) + b"\n")
        for number in range(batches):
            come = lines[STANDING + number * CHANGES :][:CHANGES]
            seen = objects[number * OBJECTS :][:OBJECTS]
            mixed: list[bytes] = []
            step = CHANGES // OBJECTS + 1
            for k, line in enumerate(come):
                mixed.append(line)
                gone = f"s{number * CHANGES + k}"
                mixed.append(
                    b'{"type":"unsubscribe","id":"%b","ts":"%b"}' % (gone.encode(), TS.encode())
                )
                if k % step == 0 and k // step < len(seen):
                    mixed.append(seen[k // step])
            mixed += seen[len(range(0, CHANGES, step)) :]
            log.write(b"\n".join(mixed) + b"\n")


def run(choice: Choice) -> None:
    """Seconds and segments through the churn; the changes a second that were sustained."""
    batches = 40 if choice.full else 14
    workload = choice.workload(OBJECTS * batches, STANDING + CHANGES * batches)
    log = choice.folder / "churn.jsonl"
    write_churn(workload, batches, log)
    session = make_session("local[2]")
    coordinator = Coordinator(
        StateDir(choice.folder / "churn"), Settings(), identify_log(log), "shared", 2
    )
    seen: list[Batch] = []
    last = time.perf_counter()

    def after(manifest: Manifest) -> None:
        nonlocal last
        now = time.perf_counter()
        live = sum(s.rows - s.ended for s in manifest.segments)
        seen.append(Batch(now - last, len(manifest.segments), live))
        last = now

    rows = 2 * CHANGES + OBJECTS
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
                CHANGES / seconds,
                CHANGES / seconds,
                OBJECTS / seconds,
                max(b.seconds for b in part),
                max(b.segments for b in part),
                part[-1].live,
            )
        )
    save_table(
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
    draw_lines(
        "churn",
        {"seconds a batch": [(k + 1, b.seconds) for k, b in enumerate(churning)],
         "segments": [(k + 1, b.segments) for k, b in enumerate(churning)]},
        x_label="batch",
        y_label="seconds, segments",
    )  # fmt: skip
