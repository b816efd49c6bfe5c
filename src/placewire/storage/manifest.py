"""Manifests: batch N is committed once manifest N exists.

A manifest describes the whole state after one batch. Its entries say which files the state needs;
`collect_garbage` keeps those and deletes the others.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.storage.layout import FORMAT, StateDir, check_format, write_file
from placewire.storage.mirror import list_names, read_file, remove_file

KEEP_MANIFESTS = 3
READ_TRIES = 5
BATCH_FILE = re.compile(r"b(\d{9})-.*\.plw$")
T = TypeVar("T")


class Offset(NamedTuple):
    """A position in the log between two lines."""

    seq: int = 0
    byte: int = 0


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a manifest. Fields that this version does not know are rejected."""


class DeltaEntry(Entry, frozen=True):
    """The changes of a batch to the results of one segment's rows: a file and a label in it."""

    file: str
    label: str
    entrants: int
    first_seq: int = 0  # of the batch, or of the first of several


class SegmentEntry(Entry, frozen=True):
    """A live segment: its file, the kind and number of its rows, and the file of its tombstones.

    `deltas` are the changes to the results of its rows since the segment was written.
    """

    name: str
    kind: int
    rows: int
    ended: int = 0
    dead: str | None = None
    deltas: list[DeltaEntry] = []


class PieceEntry(Entry, frozen=True):
    """Matches of one block's objects with the rows of one segment: two arrays of a file."""

    block: int
    file: str
    prefix: str
    segment: str
    matches: int


class ResultObjectsEntry(Entry, frozen=True):
    """Ids of objects that may be in results, from one range of the log, by seq."""

    name: str
    first_seq: int
    objects: int


class UpdatesEntry(Entry, frozen=True):
    """The batch's updates of results, by (seq, subscription id)."""

    file: str
    updates: int


class StoreEntry(Entry, frozen=True):
    """A file of retained objects, with their number and their ranges of seq and time.

    Its parts are those of the plan file `plan`, if a plan divided them.
    """

    name: str
    objects: int
    first_seq: int
    last_seq: int
    first_us: int
    last_us: int
    plan: str | None = None


class LinesEntry(Entry, frozen=True):
    """Results of the batch that are stored as JSON Lines, in order."""

    file: str
    lines: int


class BlockEntry(Entry, frozen=True):
    """One block of the batch's outbox: the file of its object ids and dead letters."""

    file: str
    first_seq: int
    dead: int


class Counters(Entry, frozen=True):
    """Totals since the log began."""

    events: int = 0
    objects: int = 0
    results: int = 0
    dead_letters: int = 0
    idle_unsubscribes: int = 0


class WorkersEntry(Entry, frozen=True):
    """Counts of the work in one batch for subscriptions of one kind, by worker."""

    batch: int
    kind: int
    objects: list[int]
    candidates: list[int]
    matches: list[int]
    bytes: list[int]
    busy_s: list[float]
    subscriptions: list[int] = []  # empty if they were not counted


class SignalsEntry(Entry, frozen=True):
    """Counts of the last batches by worker, and the file of recent counts by leaf."""

    history: list[WorkersEntry] = []
    file: str | None = None


class PreviousPlanEntry(Entry, frozen=True):
    """A leaf plan that older segments still use while a newer plan is in force."""

    method: str
    version: int
    file: str
    live: str
    segments: list[str]
    subscriptions: int  # live ones in these segments

    def file_names(self) -> set[str]:
        """Return the files that the plan needs."""
        return {self.file, self.live}


class NextPlanEntry(Entry, frozen=True):
    """A plan that takes effect with the next commit, and the files written for it."""

    why: str
    file: str = ""  # of its leaves; empty if it has none
    workers: int | None = None  # None: the number of workers stays
    files: list[str] = []  # of the plans of other kinds
    keeps_previous: bool = False  # the plan in force stays for the segments that exist

    def file_names(self) -> set[str]:
        """Return the files that the plan needs."""
        return {name for name in (self.file, *self.files) if name}


class LeafPlanEntry(Entry, tag="leaves", frozen=True):
    """A plan that divides objects among workers by leaves; the default means no plan.

    `file` has the leaves and `live` the terms that live subscriptions ask for in each. Both are
    empty while objects stay where they are read.
    """

    name: str = ""
    workers: int = 0
    version: int = -1
    why: str = ""
    method: str = ""  # of the leaves
    file: str = ""
    live: str = ""
    waits: bool = False  # for enough of the log to plan from
    made: int | None = None  # the batch after which it was planned, in this run
    changed: int | None = None  # the batch after which it was adjusted last
    cost: dict[str, float | str] | None = None  # the load model it was planned by
    asked: str = ""  # id of the last plan request that was taken up
    by_hand: str = ""  # the method that a request named
    sized: str = ""  # why the number of workers changed
    wanted_workers: int = 0  # the number of workers that a request named
    previous: PreviousPlanEntry | None = None
    next: NextPlanEntry | None = None

    def file_names(self) -> set[str]:
        """Return the files that the plan needs, with the previous and the next plan."""
        names = {name for name in (self.file, self.live) if name}
        for other in (self.previous, self.next):
            if other is not None:
                names |= other.file_names()
        return names


class RowPlanEntry(Entry, tag="rows", frozen=True):
    """A plan that divides a kind's subscriptions among workers; the default means no plan.

    Objects follow by a map of what each worker's rows want: `circles` or `terms`. A method that
    divides objects instead has `leaves` and `live`, as a leaf plan has.
    """

    name: str = ""
    workers: int = 0
    version: int = -1
    why: str = ""
    method: str = ""
    waits: bool = False  # for enough of the log to plan from
    made: int | None = None  # the batch after which it was planned, in this run
    rule: str = ""  # file of the rule that assigns new rows
    circles: str = ""
    terms: str = ""
    leaves: str = ""
    live: str = ""
    loads: list[float] = []  # by worker
    sent: int = 0  # objects sent to workers
    objects: int = 0  # objects in all
    broadcast: int = 0  # objects that a plain broadcast would have sent

    def file_names(self) -> set[str]:
        """Return the files that the plan needs."""
        files = (self.rule, self.circles, self.terms, self.leaves, self.live)
        return {name for name in files if name}


PlanEntry = LeafPlanEntry | RowPlanEntry


class Manifest(Entry, frozen=True):
    """The whole state after one batch."""

    batch: int
    epoch: int
    key: tuple[int, int]
    settings: Settings
    source: str
    offset: Offset
    next_seq: int
    now_us: int | None
    segments: list[SegmentEntry] = []
    rewrites: dict[str, str] = {}  # segment -> file that replaces it with the next commit
    plans: dict[str, PlanEntry] = {}  # by name of the kind
    blocks: list[BlockEntry] = []
    pieces: list[PieceEntry] = []
    updates: UpdatesEntry | None = None
    answers: LinesEntry | None = None
    reports: LinesEntry | None = None
    result_objects: list[ResultObjectsEntry] = []
    store: list[StoreEntry] = []
    leaving: list[StoreEntry] = []  # past retention, and not yet archived
    late_dead: str | None = None
    changes: int = 0
    counters: Counters = Counters()
    signals: SignalsEntry | None = None
    format: int = FORMAT

    @property
    def leaf_plan(self) -> LeafPlanEntry:
        """The plan that divides objects by leaves."""
        found = (plan for plan in self.plans.values() if isinstance(plan, LeafPlanEntry))
        return next(found, LeafPlanEntry())

    def row_plan(self, kind: str) -> RowPlanEntry:
        """Return the plan that divides the subscriptions of the kind with this name."""
        plan = self.plans.get(kind)
        return plan if isinstance(plan, RowPlanEntry) else RowPlanEntry()

    def with_next_plan(self, plan: NextPlanEntry | None) -> Manifest:
        """Return the manifest with a plan that follows its leaf plan, if one was prepared."""
        if plan is None:
            return self
        plans = {
            kind: msgspec.structs.replace(entry, next=plan)
            if isinstance(entry, LeafPlanEntry)
            else entry
            for kind, entry in self.plans.items()
        }
        return msgspec.structs.replace(self, plans=plans)

    def file_names(self) -> set[str]:
        """Return the name of every array file that the state needs."""
        names = {entry.file for entry in self.blocks} | {piece.file for piece in self.pieces}
        names |= {piece.segment for piece in self.pieces}
        for segment in self.segments:
            names.add(segment.name)
            names |= {delta.file for delta in segment.deltas}
            if segment.dead is not None:
                names.add(segment.dead)
        names |= set(self.rewrites.values())
        names |= {stored.name for stored in self.result_objects}
        names |= {kept.name for kept in (*self.store, *self.leaving)}
        names |= {kept.plan for kept in self.store if kept.plan is not None}
        for entry in (self.updates, self.answers, self.reports):
            if entry is not None:
                names.add(entry.file)
        if self.late_dead is not None:
            names.add(self.late_dead)
        if self.signals is not None and self.signals.file is not None:
            names.add(self.signals.file)
        for plan in self.plans.values():
            names |= plan.file_names()
        return names


class FormatField(msgspec.Struct, frozen=True):
    """The field of a manifest that says how to read the others; manifests once had none."""

    format: int = 1


def manifest_path(state: StateDir, batch: int) -> Path:
    return state.manifests / f"{batch:012d}.json"


# Created once at import: threads that create decoders concurrently may crash.
decode_format = msgspec.json.Decoder(FormatField).decode
decode_manifest = msgspec.json.Decoder(Manifest).decode


def committed_batches(state: StateDir) -> list[int]:
    """Return the numbers of all manifests, ascending."""
    try:
        names = [name.removesuffix(".json") for name in list_names(state.manifests)]
    except FileNotFoundError:
        return []
    return sorted(int(name) for name in names if name.isdecimal())


def read_manifest(state: StateDir, batch: int) -> Manifest:
    """Read one manifest; raises Unusable."""
    path = manifest_path(state, batch)
    try:
        content = read_file(path)
        check_format(state, decode_format(content).format)
        return decode_manifest(content)
    except (OSError, msgspec.DecodeError, UnicodeError) as error:
        raise Unusable(f"state {state}: manifest {batch} cannot be read: {error}") from None


def read_latest(state: StateDir) -> Manifest | None:
    """Read the newest manifest; None before the first commit."""
    batches = committed_batches(state)
    return read_manifest(state, batches[-1]) if batches else None


def retry_reading(read: Callable[[], T]) -> T:
    """Call `read` again if it fails: a writer may delete a file after its manifest was read."""
    for _ in range(READ_TRIES - 1):
        with contextlib.suppress(Unusable):
            return read()
    return read()


def write_manifest(state: StateDir, manifest: Manifest) -> None:
    """Commit a batch; raises Unusable if another writer has committed it."""
    state.check_writer()
    path = manifest_path(state, manifest.batch)
    if path.name in list_names(state.manifests):
        raise Unusable(f"state {state}: batch {manifest.batch} was committed by another writer")
    write_file(path, msgspec.json.encode(manifest))


def collect_garbage(state: StateDir, delivered: int, spared: Callable[[], set[str]]) -> int:
    """Delete files that only batches up to `delivered` needed; returns how many.

    The newest manifests are kept, so that a reader that has just read one finds its files. So are
    files of batches that are not committed yet, and those that `spared` names: a compaction may be
    writing them.
    """
    batches = committed_batches(state)
    if not batches:
        return 0
    kept = [b for b in batches if b > delivered or b in batches[-KEEP_MANIFESTS:]]
    there = list_names(state.files)
    needed = set(spared())  # read after listing: a compaction writes concurrently
    for batch in kept:
        needed |= read_manifest(state, batch).file_names()
    for batch in set(batches) - set(kept):
        remove_file(manifest_path(state, batch))
    gone = 0
    for name in there:
        own = BATCH_FILE.match(name)
        if own and name not in needed and int(own.group(1)) <= batches[-1]:
            remove_file(state.file(name))
            gone += 1
    return gone
