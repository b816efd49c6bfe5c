"""The batch's clock: `now` at the start of every block, and which leaping events are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.model.times import FAR_PAST_US


class LeapEntry(msgspec.Struct, frozen=True):
    """An event far ahead of what its block could know: position, time, the block's `now`, line."""

    event: int
    ts_us: int
    now_us: int
    line: bytes


class BlockClock(NamedTuple):
    """`now` before a block, and the fate of its leaping events, both in log order."""

    start_us: int
    accepted_event: NDArray[np.int64]
    accepted_ts_us: NDArray[np.int64]
    rejected_event: NDArray[np.int64]
    rejected_ahead_us: list[int]
    end_us: int

    def nows(self, events: NDArray[np.uint32], local_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """The true `now` at events whose block-local `now` is `local_us`."""
        nows = np.maximum(local_us, self.start_us)
        if self.accepted_event.size:
            highest = np.maximum.accumulate(self.accepted_ts_us)
            before = np.searchsorted(self.accepted_event, events, "right") - 1
            nows = np.where(before >= 0, np.maximum(nows, highest[before]), nows)
        return nows


def run_clock(
    blocks: Sequence[tuple[int, Sequence[LeapEntry]]], now_us: int | None, ahead_us: int
) -> list[BlockClock]:
    """Chain the blocks of a batch, given each one's last local `now` and its leaps.

    A block judges its events by the clock before the batch and by its own events, so what it
    lets pass is valid; what it calls a leap is judged here, by all events before it.
    """
    clocks = []
    start = FAR_PAST_US if now_us is None else now_us
    for last_now_us, leaps in blocks:
        accepted: list[tuple[int, int]] = []
        refused: list[int] = []
        ahead: list[int] = []
        highest = start
        for leap in leaps:
            now = max(highest, leap.now_us)
            if leap.ts_us - now > ahead_us:
                refused.append(leap.event)
                ahead.append(leap.ts_us - now)
            else:
                accepted.append((leap.event, leap.ts_us))
                highest = max(highest, leap.ts_us)
        end = max(highest, last_now_us)
        clocks.append(
            BlockClock(
                start,
                np.array([a[0] for a in accepted], np.int64),
                np.array([a[1] for a in accepted], np.int64),
                np.array(refused, np.int64),
                ahead,
                end,
            )
        )
        start = end
    return clocks


class BlockFacts(NamedTuple):
    """A block's file and its place in the log."""

    first_seq: int
    arrays: dict[str, NDArray[Any]]
    clock: BlockClock


def object_seqs(facts: BlockFacts) -> NDArray[np.int64]:
    """The seq of every object of the block."""
    return facts.first_seq + facts.arrays["object.event"].astype(np.int64)


def object_nows(facts: BlockFacts) -> NDArray[np.int64]:
    """The true `now` at every object of the block."""
    return facts.clock.nows(facts.arrays["object.event"], facts.arrays["object.now_us"])


class Advances(NamedTuple):
    """The clock of a batch: the events that move it, and from where to where, in log order."""

    seq: NDArray[np.int64]
    to_us: NDArray[np.int64]
    before_us: int  # before the batch; the far past if there was no event yet

    def at(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """`now` at events of the batch."""
        last = np.searchsorted(self.seq, seqs, "right") - 1
        if self.to_us.size == 0:
            return np.full(seqs.size, self.before_us)
        return np.where(last >= 0, self.to_us[last], self.before_us)


def gather_advances(facts: Sequence[BlockFacts], now_us: int | None) -> Advances:
    """Which valid events of a batch move the clock."""
    before = FAR_PAST_US if now_us is None else now_us
    seqs, nows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for fact in facts:
        a = fact.arrays
        events, times = [a["object.event"]], [object_nows(fact)]
        for kind in ("change", "query"):
            if f"{kind}.event" in a:
                events.append(a[f"{kind}.event"])
                times.append(fact.clock.nows(a[f"{kind}.event"], a[f"{kind}.now_us"]))
        event, now = np.concatenate(events), np.concatenate(times)
        order = np.argsort(event, kind="stable")
        event, now = event[order], now[order]
        valid = ~np.isin(event, fact.clock.rejected_event)
        seqs.append(fact.first_seq + event[valid].astype(np.int64))
        nows.append(now[valid])
    seq, now = np.concatenate(seqs), np.concatenate(nows)
    moves = np.empty(now.size, np.bool_)
    moves[:1] = now[:1] > before
    moves[1:] = now[1:] > now[:-1]
    return Advances(seq[moves], now[moves], before)
