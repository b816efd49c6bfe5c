"""The store: retained objects in immutable files, by slices of time; merged behind, then dropped.

A batch writes a file for each block. One whose objects are all of one slice belongs to it at once;
others are cut by slices when they are merged. A file is dropped when nothing can ask for its
objects any more. Everything here can be rebuilt from the last manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placewire.index.retained import (
    Retained,
    build_retained,
    join_retained,
    rows_of,
    take_retained,
    used_words,
)
from placewire.state.archive import archive_objects
from placewire.state.arrays import open_arrays, write_arrays
from placewire.state.compaction import tier_of
from placewire.state.layout import StateDir
from placewire.state.manifest import StoreEntry
from placewire.text.lexicon import Lexicon

INLINE_OBJECTS = 20_000  # a merge of at most this many is done in the batch that asks for it
MOST_OBJECTS = 1 << 22  # a file of more is not merged again
FAN_IN = 4
FRESH_FILES = 8  # files of several slices that are put up with
SLICES = 8  # in the time that objects are retained, if nothing else is said


class Keeping(NamedTuple):
    """How long objects are needed: by time, and by count of the newest."""

    keep_us: int
    newest: int


def write_retained(path: Path, retained: Retained) -> None:
    """Write a file of retained objects."""
    write_arrays(path, retained._asdict())


def open_retained(path: Path) -> Retained:
    """Map a file of retained objects."""
    arrays = open_arrays(path).arrays
    return Retained(*(arrays[name] for name in Retained._fields))


def describe(name: str, retained: Retained, plan: str | None = None) -> StoreEntry:
    """The entry of a file."""
    return StoreEntry(
        name,
        retained.total,
        int(retained.seq.min()),
        int(retained.seq.max()),
        int(retained.ts_us.min()),
        int(retained.ts_us.max()),
        plan,
    )


def slice_of(entry: StoreEntry, slice_us: int) -> int | None:
    """The slice of time that all objects of a file are in, if there is one."""
    first = entry.first_us // slice_us
    return first if first == entry.last_us // slice_us else None


class _Merge(NamedTuple):
    """A merge under way: what it reads, and what it will give."""

    sources: list[StoreEntry]
    result: Future[list[StoreEntry]]


class LiveStore:
    """The files that the next manifest will name."""

    def __init__(
        self,
        state: StateDir,
        entries: Sequence[StoreEntry],
        slice_us: int,
        lexicon: Lexicon | None,
        archive: Path | None = None,
        leaving: Sequence[StoreEntry] = (),
    ) -> None:
        self.state = state
        self.entries = list(entries)
        self.archive = archive
        self.leaving = list(leaving)
        self._archived: dict[str, Future[None]] = {}
        self.slice_us = slice_us
        self.lexicon = lexicon
        self.pending: _Merge | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="placewire-store")
        self.spared: set[str] = set()  # files of merges that are under way

    def tidy(self, batch: int, now_us: int, keeping: Keeping) -> None:
        """Drop what is not needed, take over a finished merge, start or do the next one."""
        if self.pending is not None and self.pending.result.done():
            pending, self.pending = self.pending, None
            self._take_over(pending)
        kept = still_needed(self.entries, now_us, keeping)
        self._let_go([entry for entry in self.entries if entry not in kept])
        self.entries = kept
        while True:
            busy = {entry.name for entry in self.pending.sources} if self.pending else set()
            free = [entry for entry in self.entries if entry.name not in busy]
            chosen = choose_files(free, now_us, self.slice_us)
            small = sum(entry.objects for entry in chosen) <= INLINE_OBJECTS
            if not chosen or (self.pending is not None and not small):
                return
            # What is too old is left out, unless it is one of the newest or is to be archived.
            wanted = keeping.newest > 0 or self.archive is not None
            oldest_us = None if wanted else now_us - keeping.keep_us
            if not small:
                result = self._thread.submit(self._merge, batch, chosen, oldest_us)
                self.pending = _Merge(chosen, result)
                return
            done: Future[list[StoreEntry]] = Future()
            done.set_result(self._merge(batch, chosen, oldest_us))
            self._take_over(_Merge(chosen, done))

    def _let_go(self, entries: list[StoreEntry]) -> None:
        """Archive files that are not retained any more; those that were are forgotten."""
        if self.archive is None:
            self.leaving = []
            return
        for name, done in list(self._archived.items()):
            if done.done():
                done.result()
                del self._archived[name]
                self.leaving = [entry for entry in self.leaving if entry.name != name]
        self.leaving += entries
        for entry in self.leaving:
            if entry.name not in self._archived:
                retained = open_retained(self.state.file(entry.name))
                self._archived[entry.name] = self._thread.submit(
                    archive_objects, self.archive, entry.name, retained
                )

    def _merge(
        self, batch: int, chosen: list[StoreEntry], oldest_us: int | None
    ) -> list[StoreEntry]:
        """Merge files into one for each slice, without objects up to `oldest_us`."""
        sources = [open_retained(self.state.file(entry.name)) for entry in chosen]
        rows, words = join_retained([(rows_of(one), one.words) for one in sources])
        slices = rows.ts_us // self.slice_us
        merged = []
        for number in np.unique(slices).tolist():
            wanted = slices == number
            if oldest_us is not None:
                wanted &= rows.ts_us > oldest_us
            picked = np.flatnonzero(wanted)
            if picked.size == 0:
                continue
            part = rows if picked.size == rows.seq.size else take_retained(rows, picked)
            retained = build_retained(*used_words(part, words), self.lexicon)
            name = self.state.new_name(batch, "objects")
            self.spared.add(name)
            write_retained(self.state.file(name), retained)
            merged.append(describe(name, retained, chosen[-1].plan))
        return merged

    def _take_over(self, merge: _Merge) -> None:
        """Put merged files in the place of their sources."""
        gone = {entry.name for entry in merge.sources}
        merged = merge.result.result()
        self.entries = [entry for entry in self.entries if entry.name not in gone] + merged
        self.entries.sort(key=lambda entry: entry.first_seq)
        self.spared -= {entry.name for entry in merged}

    def close(self) -> None:
        """Let what is under way end: merged files are swept later, what has left is archived."""
        self._thread.shutdown(wait=True)


def still_needed(entries: Sequence[StoreEntry], now_us: int, keeping: Keeping) -> list[StoreEntry]:
    """The files that may hold an object that is young enough, or one of the newest."""
    kept = []
    for entry in entries:
        newer = sum(other.objects for other in entries if other.first_seq > entry.last_seq)
        if entry.last_us > now_us - keeping.keep_us or newer < keeping.newest:
            kept.append(entry)
    return kept


def choose_files(entries: Sequence[StoreEntry], now_us: int, slice_us: int) -> list[StoreEntry]:
    """The files to merge next, or none: many that are not cut by slices, or many of one slice.

    In a slice, FAN_IN files of about one size make one; in one that is over, all of them do, unless
    what is new is little against the largest. Files of different plans are not mixed.
    """
    fresh = [entry for entry in entries if slice_of(entry, slice_us) is None]
    newest_plan = entries[-1].plan if entries else None
    if len(fresh) >= FRESH_FILES or sum(entry.objects for entry in fresh) > MOST_OBJECTS:
        alike = [entry for entry in fresh if entry.plan == fresh[0].plan]
        if len(alike) > 1 or fresh[0].plan == newest_plan:
            return alike
    by_slice: dict[tuple[int, str | None], list[StoreEntry]] = {}
    for entry in entries:
        number = slice_of(entry, slice_us)
        if number is not None and entry.objects < MOST_OBJECTS:
            by_slice.setdefault((number, entry.plan), []).append(entry)
    for (number, _), group in by_slice.items():
        sizes = sorted(entry.objects for entry in group)
        over = (number + 1) * slice_us <= now_us
        worth = len(group) >= FAN_IN or 4 * sum(sizes[:-1]) >= sizes[-1]
        if over and worth and len(group) > 1 and sum(sizes) <= MOST_OBJECTS:
            return group
        tiers: dict[int, list[StoreEntry]] = {}
        for entry in group:
            tiers.setdefault(tier_of(entry.objects), []).append(entry)
        for tier in sorted(tiers):
            if len(tiers[tier]) >= FAN_IN:
                return [entry for entry in group if tier_of(entry.objects) <= tier]
    return []
