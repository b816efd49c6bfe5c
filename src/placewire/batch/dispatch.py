"""Dispatch a block: decode it, then match it here or route its objects to workers."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from placewire.batch.block_file import block_arrays, store_block
from placewire.batch.match import add_pieces, match_here, surely_valid
from placewire.ingest.clock import LeapEntry
from placewire.ingest.decode import DecodedBlock
from placewire.ingest.log import BlockRef
from placewire.ingest.sources import decode_block
from placewire.kinds.candidates import PieceSummary
from placewire.plans.messages import BatchContext, BlockSummary, Dispatched, Routed
from placewire.plans.route.protocol import Route
from placewire.storage.arrays import forget_deleted, write_arrays
from placewire.storage.layout import StateDir


def dispatch_block(context: BatchContext, ref: BlockRef) -> Dispatched:
    """Decode one block and write its file; match it here if the route says so."""
    forget_deleted()
    started = time.perf_counter()
    block = decode_block(context, ref)
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

    Each comes with its kind, and whether it belongs to the previous plan that is kept.
    """
    routes = [(kind, False, ref.open(context.root)) for kind, ref in context.routes.items()]
    if context.previous is not None:
        kinds = [kind for kind, ref in context.routes.items() if ref == context.leaves]
        routes += [(kind, True, context.previous.plan.open(context.root)) for kind in kinds]
    return routes


def route_block(
    route: Route,
    block: DecodedBlock,
    index: int,
    kind: int,
    previous: bool,
    norms: NDArray[np.float64],
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
        for share in route.cut(block.codes, o.term_offsets, o.terms)
    ]


def count_sent(routed: list[Routed], kind: int) -> int:
    """Count the objects sent for one kind, once for every receiving worker."""
    return sum(int(part.object.size) for part in routed if part.kind == kind)
