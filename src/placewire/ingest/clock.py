"""The clock of a batch: `now` at the start of each block, and which events are too far ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from placewire.model.arrays import I64, U32, Array
from placewire.model.times import FAR_PAST_US


class LeapEntry(msgspec.Struct, frozen=True):
    """An event too far ahead of its block's clock: position, time, the block's `now`, line."""

    event: int
    ts_us: int
    now_us: int
    line: bytes


class BlockClock(NamedTuple):
    """`now` before a block, and which of its leaps were accepted or rejected, in log order."""

    start_us: int
    accepted_event: I64
    accepted_ts_us: I64
    rejected_event: I64
    rejected_ahead_us: list[int]
    end_us: int

    def nows(self, events: U32, local_us: I64) -> I64:
        """Return the true `now` at events whose block-local `now` is `local_us`."""
        nows = np.maximum(local_us, self.start_us)
        if self.accepted_event.size:
            highest = np.maximum.accumulate(self.accepted_ts_us)
            before = np.searchsorted(self.accepted_event, events, "right") - 1
            nows = np.where(before >= 0, np.maximum(nows, highest[before]), nows)
        return nows


def run_clock(
    blocks: Sequence[tuple[int, Sequence[LeapEntry]]], now_us: int | None, ahead_us: int
) -> list[BlockClock]:
    """Chain the clocks of a batch's blocks, given the last local `now` and the leaps of each.

    A block checks its events against the clock before the batch and its own events, so events that
    it accepts are valid. Its leaps are checked here against all events before them.
    """
    clocks = []
    start = FAR_PAST_US if now_us is None else now_us
    for last_now_us, leaps in blocks:
        accepted: list[tuple[int, int]] = []
        rejected: list[int] = []
        ahead: list[int] = []
        highest = start
        for leap in leaps:
            now = max(highest, leap.now_us)
            if leap.ts_us - now > ahead_us:
                rejected.append(leap.event)
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
                np.array(rejected, np.int64),
                ahead,
                end,
            )
        )
        start = end
    return clocks


class BlockFacts(NamedTuple):
    """A block's file and its place in the log."""

    first_seq: int
    arrays: dict[str, Array]
    clock: BlockClock


def object_seqs(facts: BlockFacts) -> I64:
    """Return the seq of every object of a block."""
    return facts.first_seq + facts.arrays["object.event"].astype(np.int64)


def object_nows(facts: BlockFacts) -> I64:
    """Return the true `now` at every object of a block."""
    return facts.clock.nows(facts.arrays["object.event"], facts.arrays["object.now_us"])


class Advances(NamedTuple):
    """The clock of a batch: the events that move it, and from where to where, in log order."""

    seq: I64
    to_us: I64
    before_us: int  # before the batch; the far past if there was no event yet

    def at(self, seqs: I64) -> I64:
        """Return `now` at events of the batch."""
        last = np.searchsorted(self.seq, seqs, "right") - 1
        if self.to_us.size == 0:
            return np.full(seqs.size, self.before_us)
        return np.where(last >= 0, self.to_us[last], self.before_us)


def gather_advances(facts: Sequence[BlockFacts], now_us: int | None) -> Advances:
    """Return the valid events of a batch that advance the clock."""
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
