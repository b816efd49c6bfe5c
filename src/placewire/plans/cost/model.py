"""The cost of objects and subscriptions: load models, prices, and their calibration.

`calibrate` measures them on this machine with a benchmark of about a second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol, overload

import numpy as np

from placewire.kernels.blocks import codes_to_order
from placewire.kernels.ids import mark_bits
from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import points_to_codes
from placewire.kinds.boolean.match import make_probe, match_segment
from placewire.model.arrays import F64, I64, Array
from placewire.model.expression import ACCEPT, COVER_ONE, REJECT
from placewire.model.kinds import BOOLEAN
from placewire.model.regions import BOX
from placewire.model.subscriptions import NEVER_US, SubscriptionRows, lengths_to_offsets
from placewire.plans.sample.sample import Sample
from placewire.segments.segment import Segment, make_segment

OBJECTS_A_CHANGE = 5


Rows = I64  # of a sample


class CostModel(Protocol):
    """Charges the workers of a plan for what they see and hold."""

    @property
    def name(self) -> str: ...

    @property
    def by_part(self) -> bool:
        """Whether each part of a plan is charged, and a worker the sum of its parts."""

    def cost(
        self, sample: Sample, objects: Rows, subscriptions: Rows, postings: float = 0.0
    ) -> float:
        """The load of a worker or part that sees these objects and holds these subscriptions.

        `postings` is how many postings near the objects it has to look at, for a model that
        charges for them and does not count them itself.
        """


class LoadModel(NamedTuple):
    """PS2Stream's load: c1 |O| |Q| + c2 |O| + c3 |Q+| + c4 |Q-|, in nanoseconds.

    `inserts` and `deletes` are how many of each come for one subscription that is held.

    c1 charges an object for every subscription of its worker. An index by place and term does
    not: there an object pays for the postings that it meets, wherever the others are. With
    `per_posting` instead of `per_check` objects are weighed by these (`Sample.object_work`).
    """

    per_check: float = 0.002
    per_object: float = 300.0
    per_insert: float = 1500.0
    per_delete: float = 300.0
    inserts: float = 1.0
    deletes: float = 1.0
    per_posting: float = 0.0
    name: str = "load"

    @property
    def by_part(self) -> bool:
        return False

    @property
    def posting_work(self) -> float:
        """What a posting costs, an object itself costing 1."""
        return self.per_posting / self.per_object if self.per_object > 0.0 else 0.0

    def in_stream(self, objects: int, subscriptions: int) -> LoadModel:
        """The model for so many objects while so many subscriptions stand, by PS2Stream's stream.

        There five objects come to one change, and changes are inserts and deletes in turn.
        """
        if objects == 0:
            return self
        changes = objects / (2 * OBJECTS_A_CHANGE) / max(subscriptions, 1)
        return self._replace(inserts=changes, deletes=changes)

    @overload
    def of_counts(self, objects: float, subscriptions: float) -> float: ...

    @overload
    def of_counts(self, objects: Array, subscriptions: Array) -> F64: ...

    def of_counts(self, objects: Any, subscriptions: Any) -> Any:
        """The load of so many objects and subscriptions, or of each pair of counts."""
        return (
            self.per_check * objects * subscriptions
            + self.per_object * objects
            + (self.per_insert * self.inserts + self.per_delete * self.deletes) * subscriptions
        )

    def cost(
        self, sample: Sample, objects: Rows, subscriptions: Rows, postings: float = 0.0
    ) -> float:
        work = objects.size + self.posting_work * postings
        return self.of_counts(work, float(subscriptions.size))


def read_cost(saved: dict[str, Any]) -> LoadModel:
    """The model of which `_asdict` was saved; raises ValueError or TypeError."""
    model = LoadModel(**saved)
    for name, value in model._asdict().items():
        if name != "name" and not (isinstance(value, int | float) and 0 <= value < math.inf):
            raise ValueError(f"its cost {name} must be a number from 0 on, got {value!r}")
    return model


class Prices(NamedTuple):
    """Nanoseconds for each thing that happens; by default as measured on one core in 2026."""

    probe: float = 300.0  # an object at a worker
    candidate: float = 8.0  # a posting that an object meets
    shuffle: float = 900.0  # an object packed, moved and unpacked
    insert: float = 1_500.0  # a subscription indexed at a worker
    inserts: float = 0.1  # that come with each object
    fault: float = 40_000.0  # the postings of an object read back from disk


OBJECTS = 20_000
FEW, MANY = 10_000, 150_000
LEXICON = 20_000
TERMS = 8  # of an object
SIDE_DEG = 20.0
REPEATS = 5


class Calibration(NamedTuple):
    """The load by postings met, which plans go by; prices of `auto`; PS2Stream's load."""

    load: LoadModel
    prices: Prices
    ps2stream: LoadModel


@cache
def calibrate() -> Calibration:
    """The constants of the load models and the prices of `auto`, measured once in a process."""
    random = np.random.default_rng(7)
    hashes = random.integers(1, 1 << 63, LEXICON, dtype=np.uint64)
    popularity = 1.0 / np.arange(1, LEXICON + 1)
    popularity /= popularity.sum()
    drawn = random.choice(hashes, (OBJECTS, TERMS), p=popularity)
    drawn.sort(axis=1)
    lon, lat = random.uniform(0, SIDE_DEG, (2, OBJECTS))
    codes = points_to_codes(read_only(lon), read_only(lat))
    order = codes_to_order(read_only(codes))
    probe = make_probe(
        codes[order],
        lon[order],
        lat[order],
        np.zeros(OBJECTS, np.int64),
        np.arange(OBJECTS + 1, dtype=np.int64) * TERMS,
        drawn[order].reshape(-1),
    )
    segments, times, candidates = [], [], []
    for rows in (draw_rows(random, hashes, popularity, count) for count in (FEW, MANY)):
        segment = make_segment(BOOLEAN, rows)
        segments.append(segment)
        candidates.append(match_segment(probe, segment).candidates)
        times.append(best_of(lambda segment=segment: match_segment(probe, segment)))  # type: ignore[misc]
    insert_s = best_of(lambda: make_segment(BOOLEAN, segments[1].rows)) / MANY
    delete_s = best_of(lambda: end_rows(segments[1])) / MANY
    slope = max(times[1] - times[0], 1e-9)
    per_check = slope / (OBJECTS * (MANY - FEW))
    per_object = max(times[0] / OBJECTS - per_check * FEW, 1e-9)
    load = LoadModel(1e9 * per_check, 1e9 * per_object, 1e9 * insert_s, 1e9 * delete_s)
    met = max(candidates[1] - candidates[0], 1)
    prices = Prices(probe=1e9 * per_object, candidate=1e9 * slope / met, insert=1e9 * insert_s)
    by_postings = load._replace(per_check=0.0, per_posting=prices.candidate)
    return Calibration(by_postings, prices, load)


def draw_rows(
    random: np.random.Generator, hashes: np.ndarray, popularity: np.ndarray, count: int
) -> SubscriptionRows:
    """Squares of a quarter degree with one keyword each."""
    west, south = random.uniform(0, SIDE_DEG, (2, count))
    ids = random.permutation(count).astype(np.int64)
    return SubscriptionRows(
        kind=np.full(count, BOOLEAN, np.uint8),
        k=np.zeros(count, np.uint16),
        begin_seq=np.arange(count),
        expires_us=np.full(count, NEVER_US, np.int64),
        id_hash=random.integers(1, 1 << 63, count, dtype=np.uint64),
        id_offsets=np.arange(count + 1, dtype=np.int64) * 8,
        id_bytes=ids.view(np.uint8),
        region_kind=np.full(count, BOX, np.uint8),
        box=np.column_stack([west, south, west + 0.25, south + 0.25]),
        shape_offsets=np.zeros(count + 1, np.int64),
        shape=np.empty(0, np.float64),
        cover_mode=np.full(count, COVER_ONE, np.uint8),
        literal_offsets=lengths_to_offsets(np.ones(count, np.int64)),
        literal_term=random.choice(hashes, count, p=popularity),
        literal_true=np.full(count, ACCEPT, np.int16),
        literal_false=np.full(count, REJECT, np.int16),
        literal_cover=np.ones(count, np.uint8),
    )


def end_rows(segment: Segment) -> None:
    """What ending every row costs: find each by the hash of its id, and set its bit."""
    found = np.searchsorted(segment.directory_hash, segment.rows.id_hash)
    mark_bits(
        np.zeros(segment.rows.total // 64 + 1, np.uint64),
        segment.directory_row[found].astype(np.int64),
    )


def best_of(work: Callable[[], object]) -> float:
    """The least processor time of a few runs, after one that warms up."""
    work()
    seconds = []
    for _ in range(REPEATS):
        started = time.thread_time()
        work()
        seconds.append(time.thread_time() - started)
    return min(seconds)
