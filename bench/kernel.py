"""The kernel on one core beside DuckDB on two threads: analysing and matching, no pipeline."""

from __future__ import annotations

from bench.engine import run_kernel
from bench.peers import duck
from bench.settings import STOP_WORDS, Choice
from bench.tables import save_table

OBJECTS = 262_144


def run(choice: Choice) -> None:
    """100 k and 1 M subscriptions, with and without the most frequent words as keywords."""
    rows = []
    for skip in (STOP_WORDS, 0):
        for subscriptions in (100_000, 1_000_000):
            workload = choice.workload(OBJECTS, subscriptions, skip)
            peer = duck.run(workload, repeats=2)
            ours = max((run_kernel(workload)[0] for _ in range(2)), key=lambda r: r.whole_per_s)
            assert ours.matches == peer.matches, (ours.matches, peer.matches)
            rows.append(
                (
                    f"{subscriptions:,}, {'no stop words' if skip else 'any keywords'}",
                    ours.matches / OBJECTS,
                    ours.match_per_s,
                    ours.whole_per_s,
                    peer.objects_per_s,
                    ours.match_per_s / peer.objects_per_s,
                    ours.whole_per_s / peer.objects_per_s,
                )
            )
    save_table(
        "kernel",
        (
            "subscriptions",
            "matches an object",
            "matching, objects/s",
            "analysing and matching, objects/s",
            "DuckDB, objects/s",
            "ratio of matching",
            "ratio of both",
        ),
        rows,
    )
