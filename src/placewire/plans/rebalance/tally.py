"""What a worker did in a batch, in total and by leaf of the plan."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.cells import MAX_LEVEL, codes_to_columns_rows
from placewire.kinds.candidates import Matches
from placewire.model.kinds import BOOLEAN
from placewire.plans.cost.model import Prices
from placewire.plans.kernels.owners import RouteTables
from placewire.plans.messages import Routed, WorkerSummary
from placewire.plans.sample.sample import PLAN_LEVEL

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
        self.codes: list[NDArray[np.uint32]] = []
        self.looked: list[NDArray[np.int64]] = []
        self.matched: list[NDArray[np.uint32]] = []  # objects by their place in their block
        self.blocks: list[int] = []  # where the block of each of these begins in all codes
        self.terms: list[NDArray[np.int64]] = []
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

    def arrays(self) -> dict[str, NDArray[Any]]:
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
        out: dict[str, NDArray[Any]] = {
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

    def share_out(
        self, looked: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
