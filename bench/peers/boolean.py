"""Compare Lucene Monitor, Sedona and Tile38 with Placewire on the boolean workload.

Every peer is set up as its users would, gets the same subscriptions and objects, and returns its
matches as pairs, which are compared with Placewire's. If a peer is not installed, a line says how
to enable it. Speeds are by processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.clock import say
from bench.columns import BLOCK_OBJECTS, KEY, probe_of, rows_of
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.peers import Answer, lucene_monitor, sedona, tile38
from bench.workload import Workload
from placewire.kernels.blocks import codes_to_order
from placewire.kernels.space.cells import points_to_codes
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import match_segment
from placewire.model.errors import Unusable
from placewire.text.analyzer import Analyzer

OURS = "Placewire, one core"
# Objects by the number of subscriptions, so that a peer is done in a minute or two; FEW for others.
FEW = 500
PEERS: dict[str, tuple[Callable[..., Answer], dict[int, int]]] = {
    "Lucene Monitor": (lucene_monitor.run, {10_000: 4_000, 100_000: 2_000}),
    "Sedona": (sedona.run, {10_000: 50_000, 100_000: 20_000}),
    "Tile38": (tile38.run, {10_000: 20_000, 100_000: 5_000}),
}
HEADER = (
    "subscriptions: engine", "objects", "matches an object", "pairs that differ",
    "registering, s", "objects/s", "processor time an object, µs", "times Placewire's",
)  # fmt: skip


def compare_peers(
    setup: Setup,
    names: tuple[str, ...] = tuple(PEERS),
    sizes: tuple[int, ...] = (10_000, 100_000),
    objects: int = 100_000,
) -> Figures:
    """All peers, or some, beside Placewire in one process, which gets `objects`."""
    rows = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for subscriptions in sizes:
        whole = setup.workload(objects, subscriptions)
        ours = run_ours(whole)
        each = micros(ours, objects)
        answers = {OURS: (ours, objects)}
        for name in names:
            say(f"{subscriptions:,}: {name} ..")
            start, count = PEERS[name][0], PEERS[name][1].get(subscriptions, FEW)
            folder = setup.folder / f"{name}-{subscriptions}"
            folder.mkdir()
            try:
                some = whole._replace(objects=whole.objects.slice(0, count))
                answers[name] = start(some, folder), count
            except Unusable as error:
                say(f"{name} is left out: {error}")
        for name, (answer, count) in answers.items():
            expected = ours.pairs[ours.pairs[:, 1] < count]
            rows.append((
                f"{subscriptions:,}: {name}", count, len(answer.pairs) / count,
                count_different(answer.pairs, expected), answer.prepare_s,
                count / answer.seconds, micros(answer, count), micros(answer, count) / each,
            ))  # fmt: skip
            lines.setdefault(name, []).append((subscriptions, micros(answer, count)))
    yield Table("peers", HEADER, rows)
    yield LinePlot("peers", lines, x_label="subscriptions", y_label="processor time an object, µs")


def run_ours(workload: Workload, repeats: int = 5) -> Answer:
    """Analyse and match on one core, in blocks; the best pass."""
    analyzer = Analyzer(*KEY)
    started = time.perf_counter()
    segment = make_boolean_segment(rows_of(workload, analyzer))
    prepared = time.perf_counter() - started
    pairs: list[np.ndarray] = []
    times = []
    for _ in range(repeats):
        pairs.clear()
        before, started = time.process_time(), time.perf_counter()
        for at in range(0, workload.objects.num_rows, BLOCK_OBJECTS):
            block = workload.objects.slice(at, BLOCK_OBJECTS).combine_chunks()
            found = match_segment(probe_of(block, analyzer), segment)
            order = codes_to_order(
                points_to_codes(block["lon"].to_numpy(), block["lat"].to_numpy())
            )
            pairs.append(np.stack([found.row.astype(np.int64), at + order[found.object]], 1))
        times.append((time.perf_counter() - started, time.process_time() - before))
    wall, processor = (min(column) for column in zip(*times, strict=True))
    return Answer(np.concatenate(pairs), wall, processor, prepared)


def micros(answer: Answer, objects: int) -> float:
    """Microseconds of processors an object."""
    return answer.processor_s / objects * 1e6


def count_different(some: np.ndarray, others: np.ndarray) -> int:
    """How many pairs are on one side only."""
    ours, theirs = (np.unique(pairs[:, 0] << 32 | pairs[:, 1]) for pairs in (some, others))
    doubled = len(some) - ours.size
    return int(np.setxor1d(ours, theirs, assume_unique=True).size) + doubled
