"""The dispatcher: decode a block, match it where it was read or route its objects to workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.engine.clock import LeapEntry
from placewire.engine.deadletters import dead_letter_arrays
from placewire.engine.decode import DecodedBlock, decode_lines
from placewire.engine.log import BlockRef, read_bytes
from placewire.engine.parquet import decode_row_group
from placewire.engine.planref import PlanRef
from placewire.engine.worker import NONE_DEAD, Matches, make_probe, match_all
from placewire.model.subscriptions import take_slices
from placewire.plan.reservoir import choose_evenly
from placewire.route.protocol import Route
from placewire.state.arrays import open_arrays, write_arrays
from placewire.state.layout import StateDir
from placewire.state.manifest import PieceEntry, SegmentEntry
from placewire.state.segment import Segment, open_segment
from placewire.text.analyzer import Analyzer


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
    scan: bool = False
    sample_objects: int = 0  # of each block, for the next plan


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


class PieceSummary(msgspec.Struct, frozen=True):
    """What the coordinator learns of the matches of one block with one segment."""

    piece: PieceEntry
    next_expiry_us: int
    candidates: int
    worker: int
    match_s: float


class Routed(NamedTuple):
    """Objects of one block for one worker; `object` is each one's number in the block's file.

    The columns from `codes` on are what `make_probe` takes.
    """

    worker: int
    block: int
    object: NDArray[np.uint32]
    codes: NDArray[np.uint32]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    now_us: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    probed: NDArray[np.uint8]
    alone: NDArray[np.uint8]


class Dispatched(NamedTuple):
    """A block's summary, its matches if it was matched here, and what is for others."""

    summary: BlockSummary
    pieces: list[PieceSummary]
    routed: list[Routed]


def dispatch_block(context: BatchContext, ref: BlockRef) -> Dispatched:
    """Decode one block and write its file; match it here if the route says so."""
    started = time.perf_counter()
    block = decode_block(context, ref)
    decode_s = time.perf_counter() - started
    state = StateDir(Path(context.root))
    name = state.new_name(context.batch, f"block{ref.number}")
    arrays = block_arrays(block, context)
    pieces: list[PieceSummary] = []
    routed: list[Routed] = []
    route_s = match_s = 0.0
    if context.route is None:
        found, match_s = match_here(context, block)
        add_pieces(arrays, pieces, context, found, ref.number, name, "here", -1, match_s)
    else:
        started = time.perf_counter()
        routed = route_block(context.route.open(context.root), block, ref.number)
        route_s = time.perf_counter() - started
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
    )
    return Dispatched(summary, pieces, routed)


def decode_block(context: BatchContext, ref: BlockRef) -> DecodedBlock:
    """Read one block and decode it."""
    analyzer = Analyzer(*context.key)
    if ref.format == "parquet":
        return decode_row_group(ref, analyzer, context.now_us, context.ahead_us)
    raw = read_bytes(ref.path, ref.start, ref.end)
    return decode_lines(raw, ref.first_seq, analyzer, context.now_us, context.ahead_us)


def match_here(context: BatchContext, block: DecodedBlock) -> tuple[list[Matches], float]:
    """Match a decoded block with all segments."""
    started = time.perf_counter()
    o = block.objects
    probe = make_probe(block.codes, o.lon, o.lat, o.now_us, o.term_offsets, o.terms)
    found = match_all(probe, open_live(context), context.scan)
    return found, time.perf_counter() - started


def match_routed(context: BatchContext, worker: int, parts: Sequence[Routed]) -> list[PieceSummary]:
    """A worker's part of the batch: match the routed objects and write the matches."""
    state = StateDir(Path(context.root))
    name = state.new_name(context.batch, f"worker{worker}")
    arrays: dict[str, NDArray[Any]] = {}
    pieces: list[PieceSummary] = []
    for number, part in enumerate(parts):
        started = time.perf_counter()
        probe = make_probe(*part[3:])
        found = [
            m._replace(object=part.object[m.object])
            for m in match_all(probe, open_live(context), context.scan)
        ]
        match_s = time.perf_counter() - started
        add_pieces(
            arrays, pieces, context, found, part.block, name, f"part{number}", worker, match_s
        )
    if pieces:
        write_arrays(state.file(name), arrays)
    return pieces


def open_live(context: BatchContext) -> list[tuple[Segment, NDArray[np.uint64]]]:
    """The live segments with their ended rows, mapped."""
    state = StateDir(Path(context.root))
    live = []
    for entry in context.segments:
        segment = open_segment(state.file(entry.name))
        dead = NONE_DEAD
        if entry.dead is not None:
            dead = open_arrays(state.file(entry.dead)).arrays["bits"]
        live.append((segment, dead))
    return live


def add_pieces(
    arrays: dict[str, NDArray[Any]],
    pieces: list[PieceSummary],
    context: BatchContext,
    found: Sequence[Matches],
    block: int,
    name: str,
    prefix: str,
    worker: int,
    match_s: float,
) -> None:
    """Put the matches of one block into a file's arrays, a piece for every segment that has any."""
    for number, (entry, matches) in enumerate(zip(context.segments, found, strict=True)):
        if matches.object.size == 0:
            continue
        label = f"{prefix}.{number}"
        arrays[f"{label}.object"] = matches.object
        arrays[f"{label}.row"] = matches.row
        piece = PieceEntry(block, name, label, entry.name, int(matches.object.size))
        pieces.append(
            PieceSummary(
                piece, int(matches.next_expiry_us), int(matches.candidates), worker, match_s
            )
        )


def route_block(route: Route, block: DecodedBlock, index: int) -> list[Routed]:
    """Cut a block's objects by worker, each part in cell order as the block is."""
    o = block.objects
    return [
        Routed(
            share.worker,
            index,
            share.objects.astype(np.uint32),
            block.codes[share.objects],
            o.lon[share.objects],
            o.lat[share.objects],
            o.now_us[share.objects],
            share.term_offsets,
            share.terms,
            share.probed,
            share.alone,
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
