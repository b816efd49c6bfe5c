"""Sampling: what planners know of the stream, a reservoir of objects for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import take_slices
from placewire.plan.questions import Questions
from placewire.plan.reservoir import Columns, Reservoir, choose_evenly
from placewire.state.layout import StateDir
from placewire.state.manifest import StoreEntry
from placewire.state.store import open_retained

SAMPLE_EVENTS = 100_000
OBJECTS_OF_EVENTS = 10  # one in so many of the sample's events must be an object at least
FEW = 500
RECENT = 16_000  # objects: one half for adjusting a plan to what comes now, the other to try it
SAMPLE_A_BLOCK = 256  # objects of a block of thousands, once there is a plan


def take_retained(state: StateDir, store: Sequence[StoreEntry], most: int = RECENT) -> Columns:
    """Some of the last retained objects, in code order: cell codes, offsets and distinct terms."""
    parts: list[Columns] = []
    have = 0
    for entry in reversed(store):
        kept = open_retained(state.file(entry.name))
        chosen = choose_evenly(np.arange(kept.code.size), most - have)
        offsets, at = take_slices(kept.term_offsets, chosen)
        parts.append((kept.code[chosen], offsets, kept.word_hash[kept.terms[at]]))
        have += chosen.size
        if have >= most:
            break
    reservoir = Reservoir(most)
    for part in parts:
        reservoir.add(*part)
    return reservoir.in_order()


class Sampler:
    """The sample: of a log's first events all objects, then a few of each block.

    So there is always one for another plan, and a smaller one of the last batches. They are not
    kept: after resuming they begin empty, and fill again.
    """

    def __init__(self, sample_events: int = SAMPLE_EVENTS) -> None:
        self.sample_events = sample_events
        self.objects = Reservoir()
        self.recent = Reservoir(RECENT)
        self.recent.fading = True
        self.events = 0
        self.refilled = False
        self.queries: Questions | None = None
        self.first_us: int | None = None  # the clock when the sample began, and now
        self.last_us = 0

    def observe(self, arrays: dict[str, NDArray[Any]], events: int, whole: bool) -> None:
        """Take a block in: all of its objects, or what it left for the sample."""
        self.events += events
        part = "object" if whole else "sample"
        if f"{part}.code" in arrays:
            self.objects.fading = not whole
            columns = [arrays[f"{part}.{of}"] for of in ("code", "term_offsets", "terms")]
            self.objects.add(*columns)
            self.recent.add(*columns)

    def refill(self, take: Callable[[int], Columns]) -> None:
        """Begin with retained objects, of a state that goes on; they will do if they are many."""
        least = max(1, self.sample_events // OBJECTS_OF_EVENTS)
        columns = take(least)
        self.objects.add(*columns)
        self.recent.add(*columns)
        self.refilled = self.objects.seen >= least

    def tell_time(self, now_us: int | None) -> None:
        """The clock after a batch."""
        if now_us is not None:
            self.first_us = now_us if self.first_us is None else self.first_us
            self.last_us = now_us

    def take_recent(self, retained: Callable[[], Columns]) -> Columns:
        """Objects of the last batches, in code order; before there are any, retained ones."""
        return self.recent.in_order() if self.recent.seen >= FEW else retained()

    @property
    def span_s(self) -> float:
        """In how many seconds the sample came, at least one."""
        return max(1.0, (self.last_us - (self.first_us or 0)) / 1e6)

    @property
    def source(self) -> str:
        """What a plan is made of, in words."""
        if self.refilled:
            return f"{self.objects.seen} objects, of which some were retained"
        return f"{self.events} events"

    @property
    def enough(self) -> bool:
        """Whether a plan can be made: a log may begin with subscriptions alone."""
        objects = max(1, self.sample_events // OBJECTS_OF_EVENTS)
        return self.refilled or (self.events >= self.sample_events and self.objects.seen >= objects)
