"""The anatomy of a batch on Spark: where its time goes, taken apart by measurement."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from bench.pipeline import make_standing, open_standing
from bench.settings import Choice
from bench.tables import save_table
from bench.workload import write_objects_log, write_objects_parquet
from placewire.ingest.sources import LogSource
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session

CORES = 2
PARTS = (
    "reading and decoding", "matching", "writing the block's file", "retaining objects",
    "Spark: tasks, and cores that wait", "commit on the driver", "between two batches",
)  # fmt: skip


def run(choice: Choice) -> None:
    """Batches of 500,000 and of 3,000 objects at 100,000 subscriptions, from both sources."""
    workload = choice.workload(2_000_000, 100_000)
    parquet, lines = choice.folder / "objects.parquet", choice.folder / "objects.jsonl"
    write_objects_parquet(workload, parquet)
    write_objects_log(workload, lines)
    standing = make_standing(workload, choice.folder)
    session = make_session(f"local[{CORES}]")
    columns = {}
    for name, source in (
        ("Parquet, 500,000", (parquet, "parquet", 500_000)),
        ("JSON Lines, 500,000", (lines, "jsonl", 500_000)),
        ("JSON Lines, 3,000", (lines, "jsonl", 3_000)),
    ):
        coordinator = open_standing(standing, "shared", CORES)
        seen: list[list[float]] = []
        step = coordinator.step
        path, form, rows = source

        def watched(
            batch: int, end: object, run: Callable[..., object],
            step: Callable[..., object] = step, seen: list[list[float]] = seen,
        ) -> object:  # fmt: skip
            inside: list[float] = []

            def timed(context: object) -> object:
                started = time.perf_counter()
                ran: Any = run(context)
                wall = time.perf_counter() - started
                parts = [
                    sum(getattr(block, field) for block in ran.blocks) / CORES
                    for field in ("decode_s", "match_s", "write_s", "retain_s")
                ]
                inside[:] = [*parts, wall - sum(parts), wall]
                return ran

            started = time.perf_counter()
            manifest = step(batch, end, timed)
            whole = time.perf_counter() - started
            seen.append([*inside[:5], whole - inside[5], started, started + whole])
            return manifest

        coordinator.step = watched  # type: ignore[method-assign, assignment]
        stop = partial(lambda seen, rows: len(seen) >= (4 if rows > 100_000 else 40), seen, rows)
        replay_on_spark(
            session, coordinator, LogSource(str(path), form),
            batch_rows=rows, workers=CORES, after=lambda _: None, until=stop,
        )  # fmt: skip
        coordinator.close()
        gaps = [later[6] - earlier[7] for earlier, later in pairwise(seen[1:])]
        steady = seen[1:]
        columns[name] = [
            *(sum(batch[k] for batch in steady) / len(steady) for k in range(6)),
            sum(gaps) / len(gaps),
        ]
    session.stop()
    rows_of_table = [
        (part, *(column[k] for column in columns.values())) for k, part in enumerate(PARTS)
    ]
    rows_of_table.append(("in all", *(sum(column) for column in columns.values())))
    save_table("anatomy", ("part, seconds a batch", *columns), rows_of_table)
