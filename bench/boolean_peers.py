"""Peers from elsewhere on the boolean workload: Lucene Monitor, Sedona, Tile38; if they are there.

Every peer is set up as its users would, gets the same subscriptions and the same objects, and gives
its matches as pairs, which are compared with Placewire's. One that is not there says in a line how
to enable it. Speeds are by processor time: the machine may be busy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from bench.engine import BLOCK_OBJECTS, KEY, probe_of, rows_of
from bench.peers import Answer, monitor, sedona, tile38
from bench.settings import Choice
from bench.tables import draw_lines, save_table
from bench.workload import Workload
from placewire.kernels.blocks import codes_to_order
from placewire.kernels.space.cells import points_to_codes
from placewire.kinds.boolean.match import match_segment
from placewire.model.errors import Unusable
from placewire.segments.segment import make_segment
from placewire.text.analyzer import Analyzer

SIZES = (10_000, 100_000)
OUR_OBJECTS = 100_000
OURS = "Placewire, one core"
# Objects are so many that a peer is done in a minute or two; a join makes its index in each pass.
PEERS: dict[str, tuple[Callable[..., Answer], dict[int, int]]] = {
    "Lucene Monitor": (monitor.run, {10_000: 4_000, 100_000: 2_000}),
    "Sedona": (sedona.run, {10_000: 50_000, 100_000: 20_000}),
    "Tile38": (tile38.run, {10_000: 20_000, 100_000: 5_000}),
}
HEADER = (
    "subscriptions: engine", "objects", "matches an object", "pairs that differ",
    "registering, s", "objects/s", "processor time an object, µs", "times Placewire's",
)  # fmt: skip


def run(choice: Choice, names: tuple[str, ...] = tuple(PEERS)) -> None:
    """All peers, or some, beside Placewire in one process."""
    rows = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for subscriptions in SIZES:
        whole = choice.workload(OUR_OBJECTS, subscriptions)
        ours = run_ours(whole)
        each = micros(ours, OUR_OBJECTS)
        answers = {OURS: (ours, OUR_OBJECTS)}
        for name in names:
            print(f"{subscriptions:,}: {name} ..", flush=True)
            start, objects = PEERS[name][0], PEERS[name][1][subscriptions]
            folder = choice.folder / f"{name}-{subscriptions}"
            folder.mkdir()
            try:
                some = whole._replace(objects=whole.objects.slice(0, objects))
                answers[name] = start(some, folder), objects
            except Unusable as error:
                print(f"{name} is left out: {error}", flush=True)
        for name, (answer, objects) in answers.items():
            expected = ours.pairs[ours.pairs[:, 1] < objects]
            rows.append((
                f"{subscriptions:,}: {name}", objects, len(answer.pairs) / objects,
                count_different(answer.pairs, expected), answer.prepare_s,
                objects / answer.seconds, micros(answer, objects), micros(answer, objects) / each,
            ))  # fmt: skip
            lines.setdefault(name, []).append((subscriptions, micros(answer, objects)))
    save_table("peers", HEADER, rows)
    draw_lines("peers", lines, x_label="subscriptions", y_label="processor time an object, µs")


def run_ours(workload: Workload, repeats: int = 5) -> Answer:
    """Analyse and match on one core, in blocks; the best pass."""
    analyzer = Analyzer(*KEY)
    started = time.perf_counter()
    segment = make_segment(rows_of(workload, analyzer))
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
    keys = [np.unique(pairs[:, 0] << 32 | pairs[:, 1]) for pairs in (some, others)]
    doubled = len(some) - keys[0].size
    return int(np.setxor1d(*keys, assume_unique=True).size) + doubled


def run_one(name: str) -> Callable[[Choice], None]:
    """The experiment with one peer alone."""
    return partial(run, names=(name,))
