"""What each worker and each leaf of the plan did in recent batches, and what it holds.

A worker counts its batch in a `Tally`. It reports totals, of which the manifest keeps recent ones,
and writes counts by leaf to its file. `Signals` sums those, with less weight for older batches, and
writes the sums every few batches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placewire.kernels.space.cells import MAX_LEVEL, codes_to_columns_rows
from placewire.kinds.candidates import Matches
from placewire.model.arrays import F64, I64, U32, Array
from placewire.model.errors import Unusable
from placewire.model.kinds import BOOLEAN
from placewire.plans.cost.measures import find_holders, hold_parts, post_rows
from placewire.plans.cost.model import LoadModel, Prices
from placewire.plans.kernels.owners import RouteTables
from placewire.plans.leaves import Leaves
from placewire.plans.messages import Routed, WorkerSummary
from placewire.plans.rebalance.adjustment import PartLoads
from placewire.plans.rebalance.tornado import BorderLines
from placewire.plans.sample.sample import PLAN_LEVEL
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import SignalsEntry, WorkersEntry

BY_LEAF = ("objects", "candidates", "matches", "bytes", "busy_s")  # rows of the counts
PRICES = Prices()
NO_CODES, NO_COUNTS = np.empty(0, np.uint32), np.empty(0, np.int64)


class WorkerShare(NamedTuple):
    """A block's objects at a worker: how many, their bytes without and with terms, and seconds."""

    objects: int
    fixed: float
    a_term: float
    busy_s: float


class Tally:
    """Counts of one worker in one batch; those by leaf are of boolean subscriptions.

    They are of the plan in force: work under the previous plan is only in the totals.

    Leaves are not timed one by one: a worker looks a word up for all objects of a block at once.
    The seconds that a block's objects took are shared out among them, by what each looked at.

    With `lines` they are summed along columns and rows of plan cells too, which is what a shift
    of a border is decided by.
    """

    def __init__(self, worker: int, tables: RouteTables | None, lines: bool = False) -> None:
        self.worker = worker
        self.tables = tables
        self.lines = lines
        self.totals: dict[int, list[float]] = {}
        self.codes: list[U32] = []
        self.looked: list[I64] = []
        self.matched: list[U32] = []  # objects by their place in their block
        self.blocks: list[int] = []  # where the block of each of these begins in all codes
        self.terms: list[I64] = []
        self.shares: list[WorkerShare] = []
        self.seen = 0
        self.fetched = 0

    def add(self, part: Routed, matches: list[Matches], busy_s: float) -> None:
        """Add objects that were matched, their matches and the seconds it took."""
        totals = self.totals.setdefault(part.kind, [0, 0, 0, 0, 0.0])
        candidates = sum(found.candidates for found in matches)
        size = sum(column.nbytes for column in part if isinstance(column, np.ndarray))
        hits = sum(int(found.object.size) for found in matches)
        for at, count in enumerate((part.object.size, candidates, hits, size, busy_s)):
            totals[at] += count
        by_leaf = part.kind == BOOLEAN and not part.previous and self.tables is not None
        if by_leaf and part.object.size:
            of_terms = part.terms.nbytes + part.probed.nbytes
            self.terms.append(np.diff(part.term_offsets))
            self.shares.append(
                WorkerShare(
                    part.object.size,
                    (size - of_terms) / part.object.size,
                    of_terms / max(part.terms.size, 1),
                    busy_s,
                )
            )
            self.codes.append(part.codes)
            looked = [found.looked for found in matches if found.looked is not None]
            if looked:
                self.looked.append(sum(looked[1:], start=looked[0]))
            else:
                self.looked.append(np.zeros(part.codes.size, np.int64))
            for found in matches:
                if found.object.size:
                    self.matched.append(found.object)
                    self.blocks.append(self.seen)
            self.seen += part.codes.size

    def arrays(self) -> dict[str, Array]:
        """The counts that are written with the matches, for the rebalancer.

        All objects are counted in one go: a worker gets a few of every block.
        """
        assert self.tables is not None
        codes = np.concatenate([NO_CODES, *self.codes])
        looked = np.concatenate([NO_COUNTS, *self.looked])
        ranges = np.searchsorted(self.tables.range_start, codes, "right") - 1
        leaf = self.tables.range_leaf[ranges]
        leaves = int(self.tables.part_offsets.size) - 1
        hits = np.concatenate([NO_CODES, *self.matched]).astype(np.int64)
        sizes = np.array([some.size for some in self.matched], np.int64)
        hits += np.repeat(np.array(self.blocks, np.int64), sizes)
        matched = leaf[hits]
        size, busy_s = self.share_out(looked)
        counts = (
            np.bincount(leaf, minlength=leaves),
            np.bincount(leaf, looked, leaves),
            np.bincount(matched, minlength=leaves),
            np.bincount(leaf, size, leaves),
            np.bincount(leaf, busy_s, leaves),
        )
        some = np.flatnonzero(counts[0])
        out: dict[str, Array] = {
            "load.leaf": some.astype(np.int32),
            "load.counts": np.array([column[some] for column in counts], np.float64),
        }
        if self.lines:
            shift = MAX_LEVEL - PLAN_LEVEL
            for name, line in zip(("column", "row"), codes_to_columns_rows(codes), strict=True):
                numbers, at = np.unique(line >> shift, return_inverse=True)
                out[f"load.{name}"] = numbers.astype(np.int32)
                out[f"load.{name}_cost"] = np.bincount(at, looked + 1.0)
        return out

    def share_out(self, looked: I64) -> tuple[F64, F64]:
        """The bytes and the seconds of each object."""
        if not self.shares:
            return np.empty(0), np.empty(0)
        objects = np.array([share.objects for share in self.shares])
        fixed, a_term, busy_s = np.array([share[1:] for share in self.shares], np.float64).T
        work = PRICES.probe + PRICES.candidate * looked.astype(np.float64)
        starts = np.cumsum(objects) - objects
        per_work = busy_s / np.add.reduceat(work, starts)
        size = np.repeat(fixed, objects) + np.repeat(a_term, objects) * np.concatenate(self.terms)
        return size, work * np.repeat(per_work, objects)

    def summaries(self, file: str) -> list[WorkerSummary]:
        """The summaries for the coordinator, one for each kind."""
        return [
            WorkerSummary(self.worker, kind, int(o), int(c), int(m), int(b), s, file, self.fetched)
            for kind, (o, c, m, b, s) in self.totals.items()
        ]


HISTORY = 16  # batches
NO_LINE, NO_COST = np.empty(0, np.int32), np.empty(0)
WRITTEN_EVERY = 4  # batches: a resumed run may miss the last few counts
NO_ROWS: Mapping[int, F64] = {}
FADING = 0.75  # of the counts by leaf, with each batch


class Signals:
    """The last batches by worker, and counts by leaf and worker of the plan in force."""

    def __init__(self, state: StateDir, saved: SignalsEntry | None) -> None:
        self.state = state
        self.history: list[WorkersEntry] = [] if saved is None else list(saved.history)
        self.file = None if saved is None else saved.file
        self.counts = np.zeros((len(BY_LEAF), 0, 0))  # by leaf and worker
        self.held = np.zeros((0, 0))  # subscriptions by leaf and worker, as of the last batch
        self.batches = 0  # that the counts are of
        self.files: dict[int, str] = {}  # the files of the last batch's workers
        if self.file is not None:
            # Counts can be done without: if their file is damaged, they are reset.
            with contextlib.suppress(Unusable, OSError, KeyError, IndexError, ValueError):
                arrays, facts = open_arrays(state.file(self.file))
                counts = np.zeros((len(BY_LEAF), facts["leaves"], facts["workers"]))
                counts[:, arrays["leaf"], arrays["worker"]] = arrays["counts"]
                held = np.zeros(counts.shape[1:])
                held[arrays["leaf"], arrays["worker"]] = arrays["held"]
                self.counts, self.held, self.batches = counts, held, facts["batches"]

    def forget(self, leaves: int, workers: int) -> None:
        """Reset the counts by leaf, because the plan has changed."""
        self.file = None
        self.counts = np.zeros((len(BY_LEAF), leaves, workers))
        self.held = np.zeros((leaves, workers))
        self.batches = 0

    def observe(
        self,
        batch: int,
        summaries: Sequence[WorkerSummary],
        leaves: Leaves | None,
        workers: int,
        held: Mapping[int, F64] = NO_ROWS,
    ) -> None:
        """Add the summaries of a batch's workers; `held` are their subscriptions by kind."""
        for kind in sorted({summary.kind for summary in summaries}):
            of_kind = [summary for summary in summaries if summary.kind == kind]
            self.history.append(line_up(batch, kind, of_kind, workers, held.get(kind)))
        kept = sorted({entry.batch for entry in self.history})[-HISTORY:]
        self.history = [entry for entry in self.history if entry.batch in kept]
        if leaves is None:
            return
        if self.counts.shape[1:] != (leaves.total, workers):
            self.forget(leaves.total, workers)
        self.counts *= FADING
        self.batches += 1
        self.files = {s.worker: s.file for s in summaries if s.kind == BOOLEAN and s.file}
        for summary in summaries:
            if summary.kind == BOOLEAN and summary.file:
                arrays = open_arrays(self.state.file(summary.file)).arrays
                self.counts[:, arrays["load.leaf"], summary.worker] += arrays["load.counts"]

    def ask_lines(self, worker: int) -> BorderLines:
        """The sums along columns and rows of a worker's last batch, from its own file."""
        file = self.files.get(worker)
        arrays = open_arrays(self.state.file(file)).arrays if file else {}
        if "load.column" not in arrays:
            return BorderLines((NO_LINE, NO_LINE), (NO_COST, NO_COST))
        return BorderLines(
            (arrays["load.column"], arrays["load.row"]),
            (arrays["load.column_cost"], arrays["load.row_cost"]),
        )

    @property
    def fullness(self) -> float:
        """How many whole batches the faded counts amount to."""
        return (1.0 - FADING**self.batches) / (1.0 - FADING)

    def part_loads(self, leaves: Leaves, held: F64, cost: LoadModel) -> PartLoads:
        """What each part of the plan costs, by the counts of its leaf at its worker.

        Parts of one leaf at one worker share these in proportion to what they hold.
        """
        leaf = np.repeat(np.arange(leaves.total), np.diff(leaves.part_offsets))
        objects, candidates = self.counts[:2, leaf, leaves.part_worker]
        place = leaf * leaves.workers + leaves.part_worker
        together = np.bincount(place, held + 1e-9, leaves.total * leaves.workers)[place]
        share = (held + 1e-9) / together
        load = (cost.per_object * objects + cost.per_posting * candidates) * share
        return PartLoads(load, held)

    def save(self, batch: int, leaves: Leaves | None) -> SignalsEntry:
        """The manifest's entry; the counts by leaf are written with some of them."""
        if leaves is None or not self.batches:
            self.file = None
        elif self.file is None or batch % WRITTEN_EVERY == 0:
            self.file = self.state.new_name(batch, "loads")
            leaf, worker = np.nonzero(self.counts[0] + self.held)
            write_arrays(
                self.state.file(self.file),
                {
                    "leaf": leaf,
                    "worker": worker,
                    "counts": self.counts[:, leaf, worker],
                    "held": self.held[leaf, worker],
                },
                {
                    "leaves": self.counts.shape[1],
                    "workers": self.counts.shape[2],
                    "batches": self.batches,
                },
            )
        return SignalsEntry(list(self.history), self.file)


def line_up(
    batch: int, kind: int, summaries: Sequence[WorkerSummary], workers: int, held: F64 | None = None
) -> WorkersEntry:
    """A batch's summaries as columns with an entry for every worker, idle ones too."""
    columns: dict[str, list[float]] = {
        name: [0] * workers for name in ("objects", "candidates", "matches", "bytes", "busy_s")
    }
    for summary in summaries:
        for name, column in columns.items():
            column[summary.worker] += getattr(summary, name)
    subscriptions = [] if held is None else np.rint(held).astype(int).tolist()
    return WorkersEntry(
        batch=batch,
        kind=kind,
        **columns,  # type: ignore[arg-type]
        subscriptions=subscriptions,
    )


class LeafCounts(NamedTuple):
    """Subscriptions by worker, f64[workers], and by leaf and worker, f64[leaves, workers].

    A subscription with parts of several leaves counts in each leaf, and once at a worker.
    """

    by_worker: F64
    by_leaf: F64


EVERY = 4  # batches: segments that are merged soon are not counted separately


class RowCounts:
    """Counts each segment once; rows that ended reduce its counts in proportion."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._leaves: Leaves | None = None  # that boolean segments were counted by
        self._by_leaf: dict[str, LeafCounts] = {}
        self._last = LeafCounts(np.zeros(workers), np.zeros((0, workers)))
        self._partitioned: dict[str, F64] = {}

    def count_by_leaf(
        self, batch: int, leaves: Leaves, segments: Sequence[LiveSegment]
    ) -> LeafCounts:
        """Count under a plan of leaves: every few batches, and when the plan is new."""
        if leaves is not self._leaves:
            self._leaves, self._by_leaf = leaves, {}
        elif batch % EVERY:
            return self._last
        self._by_leaf = {
            live.name: self._by_leaf.get(live.name) or count_segment(leaves, live.segment)
            for live in segments
        }
        by_worker, by_leaf = np.zeros(leaves.workers), np.zeros((leaves.total, leaves.workers))
        for live in segments:
            held, alive = self._by_leaf[live.name], share_alive(live)
            by_worker += alive * held.by_worker
            by_leaf += alive * held.by_leaf
        self._last = LeafCounts(by_worker, by_leaf)
        return self._last

    def count_partitioned(
        self, segments: Sequence[LiveSegment], count: Callable[[Segment], F64]
    ) -> F64:
        """Count the rows that each worker has, of segments that `count` counts one by one."""
        by_worker = np.zeros(self.workers)
        for live in segments:
            if live.name not in self._partitioned:
                self._partitioned[live.name] = count(live.segment)
            by_worker += share_alive(live) * self._partitioned[live.name]
        return by_worker

    def forget(self, names: set[str]) -> None:
        """Drop the counts of segments with other names."""
        self._partitioned = {
            name: held for name, held in self._partitioned.items() if name in names
        }


def share_alive(live: LiveSegment) -> float:
    return 1.0 - live.ended / max(live.segment.rows.total, 1)


def count_segment(leaves: Leaves, segment: Segment) -> LeafCounts:
    """Count the boolean subscriptions of a segment by worker and leaf."""
    posted = post_rows(segment.rows, near=False)
    parts = hold_parts(leaves, posted)
    by_leaf = np.zeros((leaves.total, leaves.workers))
    leaf = np.repeat(np.arange(leaves.total), np.diff(leaves.part_offsets))
    np.add.at(by_leaf, (leaf, leaves.part_worker), parts)
    if np.unique(leaves.part_worker).size == parts.size:  # one part each
        return LeafCounts(by_leaf.sum(axis=0), by_leaf)
    offsets, _ = find_holders(leaves, posted)
    return LeafCounts(np.diff(offsets).astype(np.float64), by_leaf)
