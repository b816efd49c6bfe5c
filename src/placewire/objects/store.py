"""The store: retained objects in immutable files by time slice, merged in the background.

A batch writes a file for each block. A file whose objects are all in one slice belongs to it at
once; others are divided by slice when they are merged. A file is dropped when no query can need its
objects any more. All state here can be rebuilt from the last manifest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.errors import Unusable
from placewire.objects.archive import archive_objects
from placewire.objects.index import (
    Retained,
    build_retained,
    join_retained,
    make_retained,
    rows_of,
    take_retained,
    used_words,
)
from placewire.segments.compaction import tier_of
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.filesystem import Folder
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry
from placewire.text.words import Lexicon

INLINE_OBJECTS = 20_000  # larger merges run in the background
QUICK_OBJECTS = 400_000  # a merge of more takes a second or longer
LANES = 2  # concurrent merges, one of them not quick
MOST_OBJECTS = 1 << 22  # larger files are not merged again
FAN_IN = 4
FRESH_FILES = 8  # tolerated number of files that span several slices
SLICES = 8  # default number of slices in the retention time
MOST_SLICES = 64  # upper limit: every slice has at least one file
OLD = -(1 << 62)  # the slice of objects kept by count only, or not at all


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
    try:
        return make_retained(arrays)
    except KeyError as missing:
        raise Unusable(f"{path}: is not a file of retained objects: lacks {missing}") from None


def describe(name: str, retained: Retained, plan: str | None = None) -> StoreEntry:
    """Return the manifest entry of a file."""
    return StoreEntry(
        name,
        retained.total,
        int(retained.seq.min()),
        int(retained.seq.max()),
        int(retained.ts_us.min()),
        int(retained.ts_us.max()),
        plan,
    )


class Slices(NamedTuple):
    """Time slices of `length_us`; everything up to `old_us` is one more slice."""

    length_us: int
    old_us: int

    def of_times(self, ts_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slice of each time."""
        return np.where(ts_us <= self.old_us, OLD, ts_us // self.length_us)

    def of_file(self, entry: StoreEntry) -> int | None:
        """Return the slice that contains all objects of a file, or None."""
        if entry.last_us <= self.old_us:
            return OLD
        first = entry.first_us // self.length_us
        return first if first == entry.last_us // self.length_us else None


class _Merge(NamedTuple):
    """A merge in progress: its sources and its future result."""

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
        archive: Folder | None = None,
        leaving: Sequence[StoreEntry] = (),
    ) -> None:
        self.state = state
        self.entries = list(entries)
        self.archive = archive
        self.leaving = list(leaving)
        self._archived: dict[str, Future[None]] = {}
        self.slice_us = slice_us
        self.lexicon = lexicon
        self.pending: list[_Merge] = []
        self._thread = ThreadPoolExecutor(LANES, thread_name_prefix="placewire-store")
        self.spared: set[str] = set()  # files of merges in progress

    def tidy(self, batch: int, now_us: int, keeping: Keeping) -> None:
        """Drop unneeded files, swap in a finished merge, and start or run the next one."""
        for merge in [merge for merge in self.pending if merge.result.done()]:
            self.pending.remove(merge)
            self._take_over(merge)
        # Keep sources until their merge ends: the merged file would bring their objects back.
        needed = {entry.name for entry in still_needed(self.entries, now_us, keeping)}
        needed |= self._merging()
        kept = [entry for entry in self.entries if entry.name in needed]
        self._let_go([entry for entry in self.entries if entry.name not in needed])
        self.entries = kept
        length_us = max(self.slice_us, -(-keeping.keep_us // MOST_SLICES))
        slices = Slices(length_us, now_us - keeping.keep_us)
        while True:
            merging = self._merging()
            free = [entry for entry in self.entries if entry.name not in merging]
            chosen = choose_files(free, now_us, slices)
            objects = sum(entry.objects for entry in chosen)
            small = objects <= INLINE_OBJECTS
            # A large merge must not delay small ones, or the stream leaves many files.
            lanes = LANES if objects <= QUICK_OBJECTS else LANES - 1
            if not chosen or (len(self.pending) >= lanes and not small):
                return
            # Old objects are dropped, unless they are among the newest or to be archived.
            whole = keeping.newest > 0 or self.archive is not None
            if not small:
                result = self._thread.submit(self._merge, batch, chosen, slices, whole)
                self.pending.append(_Merge(chosen, result))
                continue
            done: Future[list[StoreEntry]] = Future()
            done.set_result(self._merge(batch, chosen, slices, whole))
            self._take_over(_Merge(chosen, done))

    def _merging(self) -> set[str]:
        """Return the names of files that are being merged."""
        return {entry.name for merge in self.pending for entry in merge.sources}

    def _let_go(self, entries: list[StoreEntry]) -> None:
        """Release files that are no longer retained; forget those that are archived."""
        if self.archive is None:
            self.leaving = []
            return
        for name, done in list(self._archived.items()):
            if done.done():
                done.result()
                del self._archived[name]
                self.leaving = [entry for entry in self.leaving if entry.name != name]
        self.leaving += entries

    def archive_left(self) -> None:
        """Archive objects that left the store, after the commit so that none is archived twice."""
        if self.archive is None:
            return
        for entry in self.leaving:
            if entry.name not in self._archived:
                retained = open_retained(self.state.file(entry.name))
                self._archived[entry.name] = self._thread.submit(
                    archive_objects, self.archive, entry.name, retained
                )

    def _merge(
        self, batch: int, chosen: list[StoreEntry], slices: Slices, whole: bool
    ) -> list[StoreEntry]:
        """Merge files into one per slice, dropping old objects unless `whole`."""
        sources = [open_retained(self.state.file(entry.name)) for entry in chosen]
        rows, words = join_retained([(rows_of(one), one.words) for one in sources])
        numbers = slices.of_times(rows.ts_us)
        merged = []
        for number in np.unique(numbers).tolist():
            if number == OLD and not whole:
                continue
            picked = np.flatnonzero(numbers == number)
            part = rows if picked.size == rows.seq.size else take_retained(rows, picked)
            retained = build_retained(*used_words(part, words), self.lexicon)
            name = self.state.new_name(batch, "objects")
            self.spared.add(name)
            write_retained(self.state.file(name), retained)
            merged.append(describe(name, retained, chosen[-1].plan))
        return merged

    def _take_over(self, merge: _Merge) -> None:
        """Replace the sources of a merge by its files."""
        gone = {entry.name for entry in merge.sources}
        merged = merge.result.result()
        self.entries = [entry for entry in self.entries if entry.name not in gone] + merged
        self.entries.sort(key=lambda entry: entry.first_seq)
        self.spared -= {entry.name for entry in merged}

    def close(self) -> None:
        """Wait until merges and archiving in progress end; their files are deleted later."""
        self._thread.shutdown(wait=True)


def still_needed(entries: Sequence[StoreEntry], now_us: int, keeping: Keeping) -> list[StoreEntry]:
    """Return the files that may hold an object that is recent enough, or one of the newest."""
    ordered = sorted(entries, key=lambda entry: entry.first_seq)
    firsts = [entry.first_seq for entry in ordered]
    newer = [0, *accumulate(entry.objects for entry in reversed(ordered))][::-1]
    return [
        entry
        for entry in entries
        if entry.last_us > now_us - keeping.keep_us
        or newer[bisect_right(firsts, entry.last_seq)] < keeping.newest
    ]


def choose_files(entries: Sequence[StoreEntry], now_us: int, slices: Slices) -> list[StoreEntry]:
    """Choose the files to merge next, if any: many that span slices, or many of one slice.

    In a slice, FAN_IN files of similar size are merged; in a finished slice, all files are, unless
    the new ones are small compared with the largest. Files of different plans are not mixed.
    """
    fresh = [entry for entry in entries if slices.of_file(entry) is None]
    newest_plan = entries[-1].plan if entries else None
    if len(fresh) >= FRESH_FILES or sum(entry.objects for entry in fresh) > MOST_OBJECTS:
        alike = [entry for entry in fresh if entry.plan == fresh[0].plan]
        if len(alike) > 1 or fresh[0].plan == newest_plan:
            return alike
    by_slice: dict[tuple[int, str | None], list[StoreEntry]] = {}
    for entry in entries:
        number = slices.of_file(entry)
        if number is not None and entry.objects < MOST_OBJECTS:
            by_slice.setdefault((number, entry.plan), []).append(entry)
    for (number, _), group in by_slice.items():
        sizes = sorted(entry.objects for entry in group)
        over = number != OLD and (number + 1) * slices.length_us <= now_us
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
