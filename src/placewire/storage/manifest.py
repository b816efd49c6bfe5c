"""Manifests: batch N is committed when manifest N exists, and by nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from placewire.model.errors import Unusable
from placewire.model.subscriptions import BOOLEAN
from placewire.storage.layout import StateDir, write_file
from placewire.storage.mirror import list_names, read_file


class DeltaEntry(msgspec.Struct, frozen=True):
    """What a batch changed in the results of one segment's rows: a file, and a label in it."""

    file: str
    label: str
    entrants: int
    first_seq: int = 0  # of the batch, or of the first of several


class SegmentEntry(msgspec.Struct, frozen=True):
    """A live segment: its file, how many rows it has, and the file of those that have ended.

    One of `nearest` or `relevant` subscriptions has the deltas of what they hold since then.
    """

    name: str
    rows: int
    ended: int = 0
    dead: str | None = None
    kind: int = BOOLEAN
    deltas: list[DeltaEntry] = []


class PieceEntry(msgspec.Struct, frozen=True):
    """Matches of one block's objects with the rows of one segment: two arrays of a file."""

    block: int
    file: str
    prefix: str
    segment: str
    matches: int


class ResultObjectsEntry(msgspec.Struct, frozen=True):
    """Ids of objects that may be in results: those of a stretch of the log, by seq."""

    name: str
    first_seq: int
    objects: int


class UpdatesEntry(msgspec.Struct, frozen=True):
    """The batch's updates of `nearest` results, by (seq, subscription id)."""

    file: str
    updates: int


class StoreEntry(msgspec.Struct, frozen=True):
    """A file of retained objects: how many, of which part of the log, of which times.

    Their parts are those of plan file `plan`, if they were placed by one.
    """

    name: str
    objects: int
    first_seq: int
    last_seq: int
    first_us: int
    last_us: int
    plan: str | None = None


class LinesEntry(msgspec.Struct, frozen=True):
    """Results of the batch that are written as JSON Lines already, in order."""

    file: str
    lines: int


class BlockEntry(msgspec.Struct, frozen=True):
    """One block of the batch's outbox: where its objects' ids and its dead letters are."""

    file: str
    first_seq: int
    dead: int


class Counters(msgspec.Struct, frozen=True):
    """Totals since the log began."""

    events: int = 0
    objects: int = 0
    results: int = 0
    dead_letters: int = 0
    idle_unsubscribes: int = 0


class WorkersEntry(msgspec.Struct, frozen=True):
    """What the workers did in one batch for subscriptions of one kind, an entry for each."""

    batch: int
    kind: int
    objects: list[int]
    candidates: list[int]
    matches: list[int]
    bytes: list[int]
    busy_s: list[float]
    subscriptions: list[int] = []  # empty if they were not counted


class SignalsEntry(msgspec.Struct, frozen=True):
    """The last batches by worker, and the file of what was done lately by leaf."""

    history: list[WorkersEntry] = []
    file: str | None = None


class Manifest(msgspec.Struct, frozen=True):
    """The whole state after one batch."""

    batch: int
    epoch: int
    key: tuple[int, int]
    settings: dict[str, Any]
    source: str
    offset: dict[str, int]
    next_seq: int
    now_us: int | None
    segments: list[SegmentEntry] = []
    rewrites: dict[str, str] = {}  # files that take the places of segments with the next commit
    plan: dict[str, Any] = {}
    near_plan: dict[str, Any] = {}
    relevant_plan: dict[str, Any] = {}
    blocks: list[BlockEntry] = []
    pieces: list[PieceEntry] = []
    updates: UpdatesEntry | None = None
    answers: LinesEntry | None = None
    reports: LinesEntry | None = None
    result_objects: list[ResultObjectsEntry] = []
    store: list[StoreEntry] = []
    leaving: list[StoreEntry] = []  # not retained any more, and not yet archived
    late_dead: str | None = None
    changes: int = 0
    counters: Counters = Counters()
    signals: SignalsEntry | None = None

    def plan_of(self, kind: int) -> dict[str, Any]:
        """The plan of a kind's subscriptions, empty if it has none."""
        return {0: self.plan, 1: self.near_plan, 3: self.relevant_plan}.get(kind, {})

    def file_names(self) -> set[str]:
        """Every array file that this manifest needs."""
        names = {entry.file for entry in self.blocks} | {piece.file for piece in self.pieces}
        names |= {piece.segment for piece in self.pieces}
        for segment in self.segments:
            names.add(segment.name)
            names |= {delta.file for delta in segment.deltas}
            if segment.dead is not None:
                names.add(segment.dead)
        names |= set(self.rewrites.values())
        names |= {stored.name for stored in self.result_objects} | {
            kept.name for kept in self.store
        }
        names |= {gone.name for gone in self.leaving}
        names |= {kept.plan for kept in self.store if kept.plan is not None}
        names |= {lines.file for lines in (self.answers, self.reports) if lines is not None}
        if self.updates is not None:
            names.add(self.updates.file)
        if self.late_dead is not None:
            names.add(self.late_dead)
        if self.signals is not None and self.signals.file is not None:
            names.add(self.signals.file)
        names |= {self.plan[key] for key in ("file", "live", "next") if key in self.plan}
        names |= set(self.plan.get("next_files", ()))
        beside = self.plan.get("beside", {})
        names |= {beside[key] for key in ("file", "live") if key in beside}
        near_files = ("rule", "leaves", "live", "balls")
        names |= {self.near_plan[key] for key in near_files if key in self.near_plan}
        names |= {self.relevant_plan[key] for key in ("rule", "terms") if key in self.relevant_plan}
        return names


def manifest_path(state: StateDir, batch: int) -> Path:
    return state.manifests / f"{batch:012d}.json"


# Made here, once: threads that make it at the same moment may bring each other down.
decode_manifest = msgspec.json.Decoder(Manifest).decode


def committed_batches(state: StateDir) -> list[int]:
    """The numbers of all manifests that are there, ascending."""
    try:
        names = [name.removesuffix(".json") for name in list_names(state.manifests)]
    except FileNotFoundError:
        return []
    return sorted(int(name) for name in names if name.isdecimal())


def read_manifest(state: StateDir, batch: int) -> Manifest:
    """One manifest; raises Unusable when it cannot be read."""
    path = manifest_path(state, batch)
    try:
        return decode_manifest(read_file(path))
    except (OSError, msgspec.DecodeError, UnicodeError) as error:
        raise Unusable(f"state {state}: manifest {batch} cannot be read: {error}") from None


def read_latest(state: StateDir) -> Manifest | None:
    """The newest manifest, if any batch was committed."""
    batches = committed_batches(state)
    return read_manifest(state, batches[-1]) if batches else None


def write_manifest(state: StateDir, manifest: Manifest) -> None:
    """Commit a batch; raises Unusable if somebody else has."""
    state.check_writer()
    path = manifest_path(state, manifest.batch)
    if path.name in list_names(state.manifests):
        raise Unusable(f"state {state}: batch {manifest.batch} was committed by another writer")
    write_file(path, msgspec.json.encode(manifest))
