"""Decode subscribe lines to rows on one core, by the kernel and by the strict reader."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import chain
from unittest import mock

import msgspec
import numpy as np

from bench.figures import Figures, Table
from bench.harness import Setup
from bench.workload import subscribe_events
from placewire.ingest import decode
from placewire.ingest.changes import ChangeColumns, plain_changes
from placewire.text.analyzer import Analyzer

ROUNDS = 3
KS = (1, 3, 5, 10)
WITHIN_M = 5_000
ALPHAS = (0.1, 0.3, 0.5, 0.7, 0.9)
REACH_M = 20_000
TS = "2026-01-01T00:00:00Z"
ANALYZER = Analyzer(1, 2)


def measure_decoding(setup: Setup, lines: int = 200_000) -> Figures:
    """Lines a second of each kind, the best of a few rounds."""
    batches = setup.workload(1, lines).subscriptions.to_batches()
    booleans = list(chain.from_iterable(subscribe_events(batch, TS) for batch in batches))
    nearest = list(map(nearest_event, range(lines), booleans))
    kinds = {
        "boolean": booleans,
        "nearest": nearest,
        "nearest, within_m": [{**event, "within_m": WITHIN_M} for event in nearest],
        "relevant": list(map(relevant_event, range(lines), nearest)),
    }
    rows = []
    for name, events in kinds.items():
        raw = block_of(events)
        fast = lines_per_s(raw, lines)
        with mock.patch.object(decode, "plain_changes", scan_nothing):
            slow = lines_per_s(raw, lines)
        rows.append((name, slow, fast, fast / slow))
    headings = ("subscribe lines", "strict reader, lines/s", "kernel, lines/s", "ratio")
    yield Table("decoding", headings, rows)


def nearest_event(number: int, event: dict[str, object]) -> dict[str, object]:
    """A `nearest` subscription at the middle of a boolean one, with its keywords."""
    west, south, east, north = event["region"]["box"]  # type: ignore[index]
    where = str(event["where"])
    return {
        **{name: event[name] for name in ("type", "id", "ts")},
        "kind": "nearest",
        "lon": (west + east) / 2,
        "lat": (south + north) / 2,
        "keywords": [word for word in where.split() if word not in ("AND", "OR")],
        "k": KS[number % len(KS)],
        "mode": "any" if " OR " in where else "all",
    }


def relevant_event(number: int, event: dict[str, object]) -> dict[str, object]:
    """A `relevant` subscription at the point of a `nearest` one, with its keywords and k."""
    own = {name: value for name, value in event.items() if name != "mode"}
    return {**own, "kind": "relevant", "alpha": ALPHAS[number % len(ALPHAS)], "reach_m": REACH_M}


def block_of(events: Iterable[dict[str, object]]) -> np.ndarray:
    return np.frombuffer(msgspec.json.Encoder().encode_lines(events), np.uint8)


def scan_nothing(
    raw: np.ndarray,
    offsets: np.ndarray,
    lines: np.ndarray,
    first_seq: int,
    analyzer: Analyzer,
    reach_m: float,
) -> tuple[ChangeColumns, np.ndarray]:
    """Leaves every line to the strict reader."""
    return plain_changes(raw, offsets, lines[:0], first_seq, analyzer, reach_m)[0], lines


def lines_per_s(raw: np.ndarray, lines: int) -> float:
    """The best of a few rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        started = time.perf_counter()
        block = decode.decode_lines(raw, 0, ANALYZER, None, 1 << 50)
        best = max(best, lines / (time.perf_counter() - started))
        assert block.rows.total == lines
    return best
