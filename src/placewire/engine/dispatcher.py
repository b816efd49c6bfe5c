"""The dispatcher: decode a block, match it where it was read or route its objects to workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.engine.clock import LeapEntry
from placewire.engine.deadletters import dead_letter_arrays
from placewire.engine.decode import DecodedBlock, decode_lines
from placewire.engine.log import BlockRef, read_bytes
from placewire.engine.nearing import NearColumns, NearTarget, match_near
from placewire.engine.parquet import decode_row_group
from placewire.engine.planref import NearRef, PlanRef, RelevantRef
from placewire.engine.relating import RelevanceBlock, RelevantTarget, match_relevant
from placewire.engine.retaining import retain_block
from placewire.engine.worker import NONE_DEAD, Matches, make_probe, match_all
from placewire.index.retained import Retained
from placewire.model.settings import Settings
from placewire.model.subscriptions import BOOLEAN, NEAREST, RELEVANT, take_slices
from placewire.plan.reservoir import choose_evenly
from placewire.route.placement import place_by_tables
from placewire.route.protocol import Route
from placewire.state.arrays import forget_deleted, open_arrays, write_arrays
from placewire.state.layout import StateDir
from placewire.state.lexicons import open_lexicon
from placewire.state.limits import current_limits, current_thetas
from placewire.state.manifest import PieceEntry, SegmentEntry, StoreEntry
from placewire.state.segment import Segment, open_segment
from placewire.state.store import describe, write_retained
from placewire.text.analyzer import Analyzer

Found = list[tuple[SegmentEntry, Matches]]


class BatchContext(NamedTuple):
    """What every process must know to work on a batch; small, and pickled into each task."""

    root: str
    batch: int
    key: tuple[int, int]
    now_us: int | None
    ahead_us: int
    segments: tuple[SegmentEntry, ...]
    keep_objects: bool
    route: PlanRef | None  # None: objects are matched where they are read
    near: NearRef | None = None  # the same for `nearest` subscriptions
    relevant: RelevantRef | None = None  # and for `relevant` ones
    scan: bool = False
    scan_near: bool = False
    scan_relevant: bool = False
    sample_objects: int = 0  # of each block, for the next plan
    settings: Settings = Settings()
    with_text: bool = False  # texts are kept with the objects


class BlockSummary(msgspec.Struct, frozen=True):
    """What the coordinator learns of a dispatched block."""

    index: int
    first_seq: int
    end_byte: int
    events: int
    objects: int
    subscribes: int
    unsubscribes: int
    dead: int
    first_ts_us: int | None
    last_now_us: int
    leaps: list[LeapEntry]
    file: str
    decode_s: float
    route_s: float
    match_s: float
    write_s: float
    sent: int  # objects sent to workers, each once for every worker that gets it
    sent_near: int = 0  # of these, for `nearest` subscriptions
    sent_relevant: int = 0  # and for `relevant` ones
    stored: StoreEntry | None = None  # its objects, as they are retained
    retain_s: float = 0.0
    queries: int = 0


class PieceSummary(msgspec.Struct, frozen=True):
    """What the coordinator learns of the matches of one block with one segment."""

    piece: PieceEntry
    next_expiry_us: int
    candidates: int
    worker: int
    match_s: float
    passed: int = 0  # of the candidates for `nearest` rows, those in the ball


class Routed(NamedTuple):
    """Objects of one block for one worker, which matches them with subscriptions of one kind.

    `object` is each one's number in the block's file, `event` its place in the block; one that is
    not `sure` may yet be refused. The columns from `codes` to `alone` are what `make_probe` takes;
    `norms` are of their terms, for `relevant` subscriptions.
    """

    worker: int
    block: int
    kind: int
    object: NDArray[np.uint32]
    event: NDArray[np.uint32]
    sure: NDArray[np.bool_]
    codes: NDArray[np.uint32]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    now_us: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    probed: NDArray[np.uint8]
    alone: NDArray[np.uint8]
    norms: NDArray[np.float64]


class Dispatched(NamedTuple):
    """A block's summary, its matches if it was matched here, and what is for others."""

    summary: BlockSummary
    pieces: list[PieceSummary]
    routed: list[Routed]


def dispatch_block(context: BatchContext, ref: BlockRef) -> Dispatched:
    """Decode one block and write its file; match it here if the route says so."""
    forget_deleted()
    started = time.perf_counter()
    block = decode_block(context, ref)
    decode_s = time.perf_counter() - started
    state = StateDir(Path(context.root))
    name = state.new_name(context.batch, f"block{ref.number}")
    arrays = block_arrays(block, context)
    pieces: list[PieceSummary] = []
    routed: list[Routed] = []
    route_s = 0.0
    started = time.perf_counter()
    stored, norms = store_block(context, block, ref)
    retain_s = time.perf_counter() - started
    found, match_s = match_here(context, block, norms)
    add_pieces(arrays, pieces, found, ref.number, name, "here", -1, match_s)
    if context.route is not None:
        started = time.perf_counter()
        route = context.route.open(context.root)
        routed = route_block(route, block, ref.number, BOOLEAN, norms)
        route_s = time.perf_counter() - started
    if context.near is not None:
        started = time.perf_counter()
        routed += route_block(context.near.open(), block, ref.number, NEAREST, norms)
        route_s += time.perf_counter() - started
    if context.relevant is not None:
        started = time.perf_counter()
        routed += route_block(context.relevant.open(), block, ref.number, RELEVANT, norms)
        route_s += time.perf_counter() - started
    started = time.perf_counter()
    write_arrays(state.file(name), arrays)
    write_s = time.perf_counter() - started
    summary = BlockSummary(
        index=ref.number,
        first_seq=ref.first_seq,
        end_byte=ref.end,
        events=block.events,
        objects=block.objects.total,
        subscribes=block.rows.total,
        unsubscribes=int(block.changes.event.size) - block.rows.total,
        dead=len(block.dead),
        first_ts_us=block.first_ts_us,
        last_now_us=block.last_now_us,
        leaps=[LeapEntry(*leap) for leap in block.leaps],
        file=name,
        decode_s=decode_s,
        route_s=route_s,
        match_s=match_s,
        write_s=write_s,
        sent=sum(int(part.object.size) for part in routed),
        sent_near=sum(int(part.object.size) for part in routed if part.kind == NEAREST),
        sent_relevant=sum(int(part.object.size) for part in routed if part.kind == RELEVANT),
        stored=stored,
        retain_s=retain_s,
        queries=int(block.queries.event.size),
    )
    return Dispatched(summary, pieces, routed)


def store_block(
    context: BatchContext, block: DecodedBlock, ref: BlockRef
) -> tuple[StoreEntry | None, NDArray[np.float64]]:
    """Write a block's objects as they are retained; gives their norms too, by the block's order."""
    if block.objects.total == 0:
        return None, np.empty(0)
    state = StateDir(Path(context.root))
    name = state.new_name(context.batch, f"objects{ref.number}")
    lexicon = open_lexicon(state, context.settings)
    place, plan = None, None
    if context.route is not None:
        place, plan = (
            partial(place_by_tables, context.route.tables(context.root)),
            context.route.file,
        )
    retained = retain_block(
        block, ref.first_seq, Analyzer(*context.key), lexicon, place, context.with_text
    )
    write_retained(state.file(name), retained)
    return describe(name, retained, plan), norms_of(block, ref.first_seq, retained)


def norms_of(block: DecodedBlock, first_seq: int, retained: Retained) -> NDArray[np.float64]:
    """The norm of each object of a block; without a lexicon every term weighs 1."""
    if retained.norm.size == 0:
        return np.sqrt(np.diff(block.objects.term_offsets).astype(np.float64))
    norms = np.empty(block.objects.total)
    norms[np.argsort(block.objects.event)] = retained.norm[np.argsort(retained.seq)]
    return norms


def decode_block(context: BatchContext, ref: BlockRef) -> DecodedBlock:
    """Read one block and decode it."""
    analyzer = Analyzer(*context.key)
    if ref.format == "parquet":
        return decode_row_group(ref, analyzer, context.now_us, context.ahead_us)
    raw = read_bytes(ref.path, ref.start, ref.end)
    return decode_lines(
        raw,
        ref.first_seq,
        analyzer,
        context.now_us,
        context.ahead_us,
        context.settings,
        open_lexicon(StateDir(Path(context.root)), context.settings),
    )


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


def match_routed(context: BatchContext, worker: int, parts: Sequence[Routed]) -> list[PieceSummary]:
    """A worker's part of the batch: match the routed objects and write the matches."""
    state = StateDir(Path(context.root))
    name = state.new_name(context.batch, f"worker{worker}")
    arrays: dict[str, NDArray[Any]] = {}
    pieces: list[PieceSummary] = []
    for number, part in enumerate(parts):
        started = time.perf_counter()
        entries = [entry for entry in context.segments if entry.kind == part.kind]
        if part.kind == NEAREST:
            columns = NearColumns(*part[6:-2])
            targets = [open_target(context, entry, worker) for entry in entries]
            matches = [match_near(columns, t, part.event, part.sure) for t in targets]
        elif part.kind == RELEVANT:
            objects = RelevanceBlock(*part[6:-3], part.norms)
            matches = [match_relevant(objects, open_relevant(context, e, worker)) for e in entries]
        else:
            probe = make_probe(*part[6:-1])
            matches = match_all(probe, [open_live(context, e) for e in entries], context.scan)
        found = [
            (entry, m._replace(object=part.object[m.object]))
            for entry, m in zip(entries, matches, strict=True)
        ]
        match_s = time.perf_counter() - started
        add_pieces(arrays, pieces, found, part.block, name, f"part{number}", worker, match_s)
    if pieces:
        write_arrays(state.file(name), arrays)
    return pieces


def open_live(context: BatchContext, entry: SegmentEntry) -> tuple[Segment, NDArray[np.uint64]]:
    """A live segment with its ended rows, mapped."""
    state = StateDir(Path(context.root))
    segment = open_segment(state.file(entry.name))
    if entry.dead is None:
        return segment, NONE_DEAD
    return segment, open_arrays(state.file(entry.dead)).arrays["bits"]


def open_target(context: BatchContext, entry: SegmentEntry, worker: int = 0) -> NearTarget:
    """A worker's parts of a live segment of `nearest` rows, with the limits of its balls."""
    segment, dead = open_live(context, entry)
    assert segment.balls is not None
    path = StateDir(Path(context.root)).file
    limits = current_limits(entry, segment, context.segments, path)
    parts: Sequence[int] = range(segment.balls.deal.parts)
    if context.near is not None:
        parts = context.near.parts(worker, segment.balls.deal.parts)
    return NearTarget(segment, parts, limits, dead)


def open_relevant(context: BatchContext, entry: SegmentEntry, worker: int = 0) -> RelevantTarget:
    """A worker's parts of a live segment of `relevant` rows, with its thresholds."""
    segment, dead = open_live(context, entry)
    path = StateDir(Path(context.root)).file
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


def route_block(
    route: Route, block: DecodedBlock, index: int, kind: int, norms: NDArray[np.float64]
) -> list[Routed]:
    """Cut a block's objects by worker, each part in cell order as the block is."""
    o = block.objects
    sure = surely_valid(block)
    return [
        Routed(
            share.worker,
            index,
            kind,
            share.objects.astype(np.uint32),
            o.event[share.objects],
            sure[share.objects],
            block.codes[share.objects],
            o.lon[share.objects],
            o.lat[share.objects],
            o.now_us[share.objects],
            share.term_offsets,
            share.terms,
            share.probed,
            share.alone,
            norms[share.objects],
        )
        for share in route.cut(block.codes, o.term_offsets, o.terms)
    ]


def block_arrays(block: DecodedBlock, context: BatchContext) -> dict[str, NDArray[Any]]:
    """A block's file: what results, changes, dead letters and later matching need of it."""
    o = block.objects
    arrays: dict[str, NDArray[Any]] = {
        "object.event": o.event,
        "object.id_offsets": o.id_offsets,
        "object.id_bytes": o.id_bytes,
        "object.now_us": o.now_us,
    }
    if o.data_bytes.size:
        arrays |= {"object.data_offsets": o.data_offsets, "object.data_bytes": o.data_bytes}
    if any(entry.kind == RELEVANT for entry in context.segments):
        arrays["object.ts_us"] = o.ts_us
    if context.keep_objects:
        arrays |= {
            "object.code": block.codes,
            "object.lon": o.lon,
            "object.lat": o.lat,
            "object.term_offsets": o.term_offsets,
            "object.terms": o.terms,
        }
    if context.sample_objects:
        arrays |= sample_arrays(block, context.sample_objects)
    if block.changes.event.size:
        arrays |= {f"change.{k}": v for k, v in block.changes._asdict().items()}
        arrays |= {f"rows.{k}": v for k, v in block.rows._asdict().items()}
    if block.queries.event.size:
        arrays |= {f"query.{k}": v for k, v in block.queries._asdict().items()}
    if block.dead:
        arrays |= dead_letter_arrays(block.dead)
    return arrays


def sample_arrays(block: DecodedBlock, most: int) -> dict[str, NDArray[Any]]:
    """A few of a block's objects, at even steps along the curve: all over the place."""
    chosen = choose_evenly(np.arange(block.objects.total), most)
    offsets, at = take_slices(block.objects.term_offsets, chosen)
    return {
        "sample.code": block.codes[chosen],
        "sample.term_offsets": offsets,
        "sample.terms": block.objects.terms[at],
    }
