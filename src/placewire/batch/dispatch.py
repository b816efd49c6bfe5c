"""Dispatch a block: decode it, write its file, then match it or route its objects to workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from placewire.batch.match import add_pieces, match_here, surely_valid
from placewire.ingest.clock import BlockClock, LeapEntry
from placewire.ingest.decode import DeadLetter, DecodedBlock
from placewire.ingest.log import BlockRef
from placewire.ingest.sources import DecodeContext, decode_block
from placewire.kinds.candidates import PieceSummary
from placewire.model.arrays import F64, Array
from placewire.model.kinds import kind_numbered
from placewire.model.subscriptions import lengths_to_offsets, rows_to_arrays, take_slices
from placewire.objects.index import Retained
from placewire.objects.retain import retain_block
from placewire.objects.store import describe, write_retained
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.messages import BatchContext, BlockSummary, Dispatched, Routed
from placewire.plans.route.leaf_route import Route, place_objects
from placewire.plans.sample.sample import choose_evenly
from placewire.storage.arrays import forget_deleted, label_columns, write_arrays
from placewire.storage.layout import StateDir, open_lexicon
from placewire.storage.manifest import StoreEntry
from placewire.text.analyzer import open_analyzer


def dispatch_block(context: BatchContext, ref: BlockRef) -> Dispatched:
    """Decode one block and write its file; match it here if the route says so."""
    forget_deleted()
    started = time.perf_counter()
    block = decode_block(
        DecodeContext(
            context.root, context.settings, context.key, context.now_us, context.ahead_us
        ),
        ref,
    )
    decode_s = time.perf_counter() - started
    state = StateDir.at(context.root)
    name = state.new_name(context.batch, f"block{ref.number}")
    arrays = block_arrays(block, context)
    pieces: list[PieceSummary] = []
    routed: list[Routed] = []
    started = time.perf_counter()
    stored, norms = store_block(context, block, ref)
    retain_s = time.perf_counter() - started
    found, match_s = match_here(context, block, norms)
    add_pieces(arrays, pieces, found, ref.number, name, "here", -1, match_s)
    started = time.perf_counter()
    for kind, previous, route in open_routes(context):
        routed += route_block(route, block, ref.number, kind, previous, norms)
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
        sent_by_kind={kind: count_sent(routed, kind) for kind in context.routes},
        stored=stored,
        retain_s=retain_s,
        queries=int(block.queries.event.size),
    )
    return Dispatched(summary, pieces, routed)


def open_routes(context: BatchContext) -> list[tuple[int, bool, Route]]:
    """Open the routes of the kinds whose objects are sent to workers.

    Returns the kind of each, whether it belongs to the previous plan, and the route.
    """
    routes = [(kind, False, ref.open(context.root)) for kind, ref in context.routes.items()]
    if context.previous is not None:
        kinds = [kind for kind, ref in context.routes.items() if ref == context.leaves]
        routes += [(kind, True, context.previous.plan.open(context.root)) for kind in kinds]
    return routes


def route_block(
    route: Route, block: DecodedBlock, index: int, kind: int, previous: bool, norms: F64
) -> list[Routed]:
    """Cut a block's objects by worker, each part in cell order as the block is."""
    o = block.objects
    sure = surely_valid(block)
    return [
        Routed(
            share.worker,
            index,
            kind,
            previous,
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
        for share in route.cut(Objects(block.codes, o.term_offsets, o.terms))
    ]


def count_sent(routed: list[Routed], kind: int) -> int:
    """Count the objects sent for one kind, once for every receiving worker."""
    return sum(int(part.object.size) for part in routed if part.kind == kind)


def block_arrays(block: DecodedBlock, context: BatchContext) -> dict[str, Array]:
    """Return the arrays of a block's file: ids, changes, queries, dead letters, a sample."""
    o = block.objects
    arrays: dict[str, Array] = {
        "object.event": o.event,
        "object.id_offsets": o.id_offsets,
        "object.id_bytes": o.id_bytes,
        "object.now_us": o.now_us,
    }
    if o.data_bytes.size:
        arrays |= {"object.data_offsets": o.data_offsets, "object.data_bytes": o.data_bytes}
    if any(kind_numbered(entry.kind).uses_window for entry in context.segments):
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
        arrays |= label_columns("change", block.changes)
        arrays |= rows_to_arrays(block.rows)
    if block.queries.event.size:
        arrays |= label_columns("query", block.queries)
    if block.dead:
        arrays |= dead_letter_arrays(block.dead)
    return arrays


def sample_arrays(block: DecodedBlock, most: int) -> dict[str, Array]:
    """Sample a block's objects evenly along the space-filling curve."""
    chosen = choose_evenly(np.arange(block.objects.total), most)
    offsets, at = take_slices(block.objects.term_offsets, chosen)
    return {
        "sample.code": block.codes[chosen],
        "sample.term_offsets": offsets,
        "sample.terms": block.objects.terms[at],
    }


def store_block(
    context: BatchContext, block: DecodedBlock, ref: BlockRef
) -> tuple[StoreEntry | None, F64]:
    """Write a block's retained objects; returns the entry and the norms in block order."""
    if block.objects.total == 0:
        return None, np.empty(0)
    state = StateDir.at(context.root)
    name = state.new_name(context.batch, f"objects{ref.number}")
    lexicon = open_lexicon(state, context.settings)
    place, plan = None, None
    if context.leaves is not None:
        place, plan = (
            partial(place_objects, context.leaves.tables(context.root)),
            context.leaves.file,
        )
    analyzer = open_analyzer(context.settings, context.key)
    retained = retain_block(block, ref.first_seq, analyzer, lexicon, place, context.with_text)
    write_retained(state.file(name), retained)
    return describe(name, retained, plan), norms_of(block, ref.first_seq, retained)


def norms_of(block: DecodedBlock, first_seq: int, retained: Retained) -> F64:
    """Return the norm of each object of a block; without a lexicon every term weighs 1."""
    if retained.norm.size == 0:
        return np.sqrt(np.diff(block.objects.term_offsets).astype(np.float64))
    norms = np.empty(block.objects.total)
    norms[np.argsort(block.objects.event)] = retained.norm[np.argsort(retained.seq)]
    return norms


def dead_letter_arrays(letters: Sequence[DeadLetter]) -> dict[str, Array]:
    """Return dead letters as arrays of a file."""
    errors = [letter.error.encode("utf-8", "replace") for letter in letters]
    lines = [letter.line for letter in letters]
    return {
        "dead.event": np.array([letter.event for letter in letters], np.int64),
        "dead.error_offsets": lengths_to_offsets(np.array([len(e) for e in errors], np.int64)),
        "dead.error_bytes": np.frombuffer(b"".join(errors), np.uint8),
        "dead.line_offsets": lengths_to_offsets(np.array([len(x) for x in lines], np.int64)),
        "dead.line_bytes": np.frombuffer(b"".join(lines), np.uint8),
    }


def reject_leaps(
    blocks: Sequence[tuple[int, Sequence[LeapEntry]]],
    clocks: Sequence[BlockClock],
    max_ahead_us: int,
) -> list[DeadLetter]:
    """Return the events that the clock rejected, from the first seq and the leaps of each block."""
    letters = []
    for (first_seq, leaps), clock in zip(blocks, clocks, strict=True):
        ahead = dict(zip(clock.rejected_event.tolist(), clock.rejected_ahead_us, strict=True))
        for leap in leaps:
            if leap.event in ahead:
                error = (
                    f"ts must be at most max_ahead ({max_ahead_us // 1_000_000} s) past the latest"
                    f" ts, got {ahead[leap.event] // 1_000_000} s past it"
                )
                letters.append(DeadLetter(first_seq + leap.event, error, leap.line))
    return letters
