"""Pieces: what a batch's objects match in the live segments, here or at a worker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.decode import DecodedBlock
from placewire.kinds.boolean.match import Matches, make_probe, match_all
from placewire.kinds.nearest.match import NearColumns, NearTarget, match_near
from placewire.kinds.relevant.match import RelevanceBlock, RelevantTarget, match_relevant
from placewire.model.subscriptions import BOOLEAN, NEAREST, RELEVANT
from placewire.plans.messages import BatchContext, PieceSummary, Routed, WorkerSummary
from placewire.plans.rebalance.prefetch import fetch, fetch_heirs
from placewire.plans.rebalance.tally import Tally
from placewire.segments.segment import Segment, open_segment, open_segments
from placewire.segments.thresholds import current_limits, current_thetas
from placewire.storage.arrays import write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import PieceEntry, SegmentEntry

Found = list[tuple[SegmentEntry, Matches]]


def match_here(
    context: BatchContext, block: DecodedBlock, norms: NDArray[np.float64]
) -> tuple[Found, float]:
    """Match a decoded block with the segments whose objects are matched where they are read."""
    started = time.perf_counter()
    o = block.objects
    routes = {BOOLEAN: context.route, NEAREST: context.near, RELEVANT: context.relevant}
    here = [entry for entry in context.segments if routes.get(entry.kind, ...) is None]
    if not here or o.total == 0:
        return [], 0.0
    columns = (block.codes, o.lon, o.lat, o.now_us, o.term_offsets, o.terms)
    found: Found = []
    near = [entry for entry in here if entry.kind == NEAREST]
    others = [entry for entry in here if entry.kind == BOOLEAN]
    if others:
        live = [open_live(context, entry) for entry in others]
        found += zip(others, match_all(make_probe(*columns), live, context.scan), strict=True)
    if near:
        sure = surely_valid(block)
    for entry in near:
        target = open_target(context, entry)
        matches = match_near(NearColumns(*columns), target, o.event, sure, context.scan_near)
        found.append((entry, matches))
    for entry in here:
        if entry.kind == RELEVANT:
            objects = RelevanceBlock(*columns, norms)
            relevant = open_relevant(context, entry)
            found.append((entry, match_relevant(objects, relevant, context.scan_relevant)))
    return found, time.perf_counter() - started


def match_routed(
    context: BatchContext, worker: int, parts: Sequence[Routed]
) -> tuple[list[PieceSummary], list[WorkerSummary]]:
    """A worker's part of the batch: match the routed objects, and write matches and tally."""
    state = StateDir.at(context.root)
    name = state.new_name(context.batch, f"worker{worker}")
    arrays: dict[str, NDArray[Any]] = {}
    pieces: list[PieceSummary] = []
    tables = None
    if context.tally and context.route is not None:
        tables = context.route.tables(context.root)
    tally = Tally(worker, tables, context.lines)
    if context.next_plan and context.route is not None:
        entries = [entry for entry in context.segments if entry.kind == BOOLEAN]
        live = [open_live(context, entry)[0] for entry in entries]
        tally.fetched = fetch(context.root, context.route, context.next_plan, worker, live)
    if context.heirs:
        heirs = [open_segment(state.file(name)) for name in context.heirs]
        routes = {NEAREST: context.near, RELEVANT: context.relevant}
        tally.fetched += fetch_heirs(heirs, routes, worker)
    for number, part in enumerate(parts):
        started = time.perf_counter()
        entries = [entry for entry in context.segments if concerns(context, entry, part)]
        if part.kind == NEAREST:
            columns = NearColumns(*part[7:-2])
            targets = [open_target(context, entry, worker) for entry in entries]
            matches = [match_near(columns, t, part.event, part.sure) for t in targets]
        elif part.kind == RELEVANT:
            objects = RelevanceBlock(*part[7:-3], part.norms)
            matches = [match_relevant(objects, open_relevant(context, e, worker)) for e in entries]
        else:
            probe = make_probe(*part[7:-1])
            matches = match_all(probe, [open_live(context, e) for e in entries], context.scan)
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
    """Whether routed objects are for a segment: by their kind, and by the plan that it goes by."""
    older = context.beside is not None and entry.name in context.beside.segments
    return entry.kind == part.kind and older == part.beside


def open_live(context: BatchContext, entry: SegmentEntry) -> tuple[Segment, NDArray[np.uint64]]:
    """A live segment with its ended rows, mapped."""
    return open_segments(StateDir.at(context.root), [entry])[0]


def open_target(context: BatchContext, entry: SegmentEntry, worker: int = 0) -> NearTarget:
    """A worker's parts of a live segment of `nearest` rows, with the limits of its balls."""
    segment, dead = open_live(context, entry)
    assert segment.balls is not None
    path = StateDir.at(context.root).file
    limits = current_limits(entry, segment, context.segments, path)
    parts: Sequence[int] = range(segment.balls.deal.parts)
    if context.near is not None:
        parts = context.near.parts(worker, segment.balls.deal.parts)
    return NearTarget(segment, parts, limits, dead)


def open_relevant(context: BatchContext, entry: SegmentEntry, worker: int = 0) -> RelevantTarget:
    """A worker's parts of a live segment of `relevant` rows, with its thresholds."""
    segment, dead = open_live(context, entry)
    path = StateDir.at(context.root).file
    theta = current_thetas(entry, segment, context.segments, path)
    parts: Sequence[int] = range(len(segment.groups))
    if context.relevant is not None:
        parts = range(worker, len(segment.groups), context.relevant.workers)
    return RelevantTarget(segment, parts, theta, dead)


def add_pieces(
    arrays: dict[str, NDArray[Any]],
    pieces: list[PieceSummary],
    found: Found,
    block: int,
    name: str,
    prefix: str,
    worker: int,
    match_s: float,
) -> None:
    """Put the matches of one block into a file's arrays, a piece for every segment that has any.

    One of other rows is told of if objects looked at its postings, in vain or not.
    """
    for number, (entry, matches) in enumerate(found):
        if matches.object.size == 0 and (entry.kind == BOOLEAN or not matches.candidates):
            continue
        label = f"{prefix}.{number}"
        arrays[f"{label}.object"] = matches.object
        arrays[f"{label}.row"] = matches.row
        if matches.distance is not None:
            arrays[f"{label}.distance"] = matches.distance
        if matches.nano is not None:
            arrays[f"{label}.nano"] = matches.nano
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


def surely_valid(block: DecodedBlock) -> NDArray[np.bool_]:
    """Which objects of a block no clock can refuse any more."""
    return ~np.isin(block.objects.event, [leap.event for leap in block.leaps])
