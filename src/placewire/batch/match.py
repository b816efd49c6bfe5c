"""Match a batch's objects with the live segments, where they were read or at a worker."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from placewire.ingest.decode import DecodedBlock
from placewire.kinds.candidates import Matches, ObjectBlock, PieceSummary, Target
from placewire.model.arrays import F64, Array, Bools
from placewire.model.kinds import all_kinds, kind_numbered
from placewire.plans.messages import BatchContext, Routed, WorkerSummary
from placewire.plans.rebalance.change import fetch, prefetch_rewrites
from placewire.plans.rebalance.signals import Tally
from placewire.segments.segment import open_segment, open_segments
from placewire.segments.thresholds import current_thresholds
from placewire.storage.arrays import write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import PieceEntry, SegmentEntry

FoundMatches = list[tuple[SegmentEntry, Matches]]


def match_here(
    context: BatchContext, block: DecodedBlock, norms: F64
) -> tuple[FoundMatches, float]:
    """Match a decoded block with the segments whose objects are matched where they are read."""
    started = time.perf_counter()
    o = block.objects
    found: FoundMatches = []
    if o.total == 0:
        return found, 0.0
    objects = ObjectBlock(
        block.codes,
        o.lon,
        o.lat,
        o.now_us,
        o.term_offsets,
        o.terms,
        event=o.event,
        sure=surely_valid(block),
        norms=norms,
    )
    for kind in all_kinds():
        if not kind.matched or kind.number in context.routes:
            continue
        entries = [entry for entry in context.segments if entry.kind == kind.number]
        if entries:
            targets = [open_target(context, entry) for entry in entries]
            scan = kind.number in context.scans
            found += zip(entries, kind.match(objects, targets, scan), strict=True)
    return found, time.perf_counter() - started


def match_routed(
    context: BatchContext, worker: int, parts: Sequence[Routed]
) -> tuple[list[PieceSummary], list[WorkerSummary]]:
    """Run a worker's part of the batch: match routed objects, write matches and counts."""
    state = StateDir.at(context.root)
    name = state.new_name(context.batch, f"worker{worker}")
    arrays: dict[str, Array] = {}
    pieces: list[PieceSummary] = []
    tables = None
    if context.tally and context.leaves is not None:
        tables = context.leaves.tables(context.root)
    tally = Tally(worker, tables, context.lines)
    if context.next_plan and context.leaves is not None:
        entries = [e for e in context.segments if context.routes.get(e.kind) == context.leaves]
        live = [segment for segment, _ in open_segments(state, entries)]
        tally.fetched = fetch(context.root, context.leaves, context.next_plan, worker, live)
    if context.rewrites:
        rewrites = [open_segment(state.file(name)) for name in context.rewrites]
        divided = {k: r for k, r in context.routes.items() if r != context.leaves}
        tally.fetched += prefetch_rewrites(rewrites, divided, worker)
    for number, part in enumerate(parts):
        started = time.perf_counter()
        entries = [entry for entry in context.segments if concerns(context, entry, part)]
        targets = [open_target(context, entry, worker) for entry in entries]
        scan = part.kind in context.scans
        matches = kind_numbered(part.kind).match(part.objects(), targets, scan)
        found = [
            (entry, m._replace(object=part.object[m.object]))
            for entry, m in zip(entries, matches, strict=True)
        ]
        match_s = time.perf_counter() - started
        add_pieces(arrays, pieces, found, part.block, name, f"part{number}", worker, match_s)
        tally.add(part, matches, match_s)
    if tables is not None:
        arrays |= tally.arrays()
    if pieces or tables is not None:
        write_arrays(state.file(name), arrays)
    return pieces, tally.summaries(name if tables is not None else "")


def concerns(context: BatchContext, entry: SegmentEntry, part: Routed) -> bool:
    """Return whether routed objects are for a segment, by its kind and its plan."""
    older = context.previous is not None and entry.name in context.previous.segments
    return entry.kind == part.kind and older == part.previous


def open_target(context: BatchContext, entry: SegmentEntry, worker: int = 0) -> Target:
    """Open a worker's parts of a live segment, with its thresholds and tombstones."""
    state = StateDir.at(context.root)
    [(segment, dead)] = open_segments(state, [entry])
    total = len(kind_numbered(entry.kind).parts(segment))
    route = context.routes.get(entry.kind)
    parts = range(total) if route is None else route.parts(worker, total)
    thresholds = current_thresholds(entry, segment, context.segments, state.file)
    return Target(segment, dead, parts, thresholds)


def add_pieces(
    arrays: dict[str, Array],
    pieces: list[PieceSummary],
    found: FoundMatches,
    block: int,
    name: str,
    prefix: str,
    worker: int,
    match_s: float,
) -> None:
    """Add the matches of one block to a file's arrays, one piece per segment.

    A piece without matches is kept if a kind that is not exact needs its number of candidates.
    """
    for number, (entry, matches) in enumerate(found):
        counted = matches.candidates and not kind_numbered(entry.kind).exact
        if matches.object.size == 0 and not counted:
            continue
        label = f"{prefix}.{number}"
        arrays[f"{label}.object"] = matches.object
        arrays[f"{label}.row"] = matches.row
        if matches.measure is not None:
            arrays[f"{label}.measure"] = matches.measure
        piece = PieceEntry(block, name, label, entry.name, int(matches.object.size))
        pieces.append(
            PieceSummary(
                piece,
                int(matches.next_expiry_us),
                int(matches.candidates),
                worker,
                match_s,
                matches.passed,
            )
        )


def surely_valid(block: DecodedBlock) -> Bools:
    """Return a mask of the objects that the clock cannot reject."""
    return ~np.isin(block.objects.event, [leap.event for leap in block.leaps])
