"""A worker's tally: what it did in a batch, in all and by leaf of the plan."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.engine.batches import Routed, WorkerSummary
from placewire.engine.worker import Matches
from placewire.kernels.cells import MAX_LEVEL, codes_to_columns_rows
from placewire.model.subscriptions import BOOLEAN
from placewire.plan.sample import PLAN_LEVEL
from placewire.route.leafroute import RouteTables

BY_LEAF = ("objects", "candidates", "matches")


class Tally:
    """Counts of one worker in one batch; those by leaf are of boolean subscriptions.

    With `lines` they are summed along columns and rows of plan cells too, which is what a shift
    of a border is decided by.
    """

    def __init__(self, worker: int, tables: RouteTables | None, lines: bool = False) -> None:
        self.worker = worker
        self.tables = tables
        self.lines = lines
        self.totals: dict[int, list[float]] = {}
        leaves = 0 if tables is None else int(tables.part_offsets.size) - 1
        self.by_leaf = np.zeros((len(BY_LEAF), leaves))
        self.columns: dict[int, float] = {}
        self.rows: dict[int, float] = {}
        self.fetched = 0

    def add(self, part: Routed, matches: list[Matches], busy_s: float) -> None:
        """What some objects were matched with, and in what time."""
        totals = self.totals.setdefault(part.kind, [0, 0, 0, 0, 0.0])
        candidates = sum(found.candidates for found in matches)
        size = sum(column.nbytes for column in part if isinstance(column, np.ndarray))
        hits = sum(int(found.object.size) for found in matches)
        for at, count in enumerate((part.object.size, candidates, hits, size, busy_s)):
            totals[at] += count
        if part.kind == BOOLEAN and self.tables is not None:
            self._spread(part, matches)

    def _spread(self, part: Routed, matches: list[Matches]) -> None:
        assert self.tables is not None
        ranges = np.searchsorted(self.tables.range_start, part.codes, "right") - 1
        leaf = self.tables.range_leaf[ranges]
        looked = np.zeros(leaf.size)
        for found in matches:
            if found.looked is not None:
                looked += found.looked
        leaves = self.by_leaf.shape[1]
        self.by_leaf[0] += np.bincount(leaf, minlength=leaves)
        self.by_leaf[1] += np.bincount(leaf, looked, leaves)
        for found in matches:
            self.by_leaf[2] += np.bincount(leaf[found.object], minlength=leaves)
        if self.lines:
            shift = MAX_LEVEL - PLAN_LEVEL
            for of, line in zip(
                (self.columns, self.rows), codes_to_columns_rows(part.codes), strict=True
            ):
                numbers, at = np.unique(line >> shift, return_inverse=True)
                for number, count in zip(
                    numbers.tolist(), np.bincount(at, looked + 1.0).tolist(), strict=True
                ):
                    of[number] = of.get(number, 0.0) + count

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is written beside the matches, for whoever decides about the plan."""
        leaf = np.flatnonzero(self.by_leaf.any(axis=0))
        out: dict[str, NDArray[Any]] = {"load.leaf": leaf.astype(np.int32)}
        for name, counts in zip(BY_LEAF, self.by_leaf, strict=True):
            out[f"load.{name}"] = counts[leaf]
        if self.lines:
            for name, of in (("column", self.columns), ("row", self.rows)):
                out[f"load.{name}"] = np.array(list(of), np.int32)
                out[f"load.{name}_cost"] = np.array(list(of.values()))
        return out

    def summaries(self, file: str) -> list[WorkerSummary]:
        """What the coordinator is told, one for each kind."""
        return [
            WorkerSummary(self.worker, kind, int(o), int(c), int(m), int(b), s, file, self.fetched)
            for kind, (o, c, m, b, s) in self.totals.items()
        ]
