"""Write a block's file and its retained objects, for later steps and later batches."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.batch.dead_letters import dead_letter_arrays
from placewire.ingest.decode import DecodedBlock
from placewire.ingest.log import BlockRef
from placewire.model.kinds import kind_numbered
from placewire.model.subscriptions import take_slices
from placewire.objects.index import Retained
from placewire.objects.retain import retain_block
from placewire.objects.store import describe, write_retained
from placewire.plans.messages import BatchContext
from placewire.plans.route.leaf_route import place_objects
from placewire.plans.sample.sampler import choose_evenly
from placewire.storage.layout import StateDir, open_lexicon
from placewire.storage.manifest import StoreEntry
from placewire.text.analyzer import open_analyzer


def block_arrays(block: DecodedBlock, context: BatchContext) -> dict[str, NDArray[Any]]:
    """Return the arrays of a block's file: ids, changes, queries, dead letters, a sample."""
    o = block.objects
    arrays: dict[str, NDArray[Any]] = {
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
        arrays |= {f"change.{k}": v for k, v in block.changes._asdict().items()}
        arrays |= {f"rows.{k}": v for k, v in block.rows._asdict().items()}
    if block.queries.event.size:
        arrays |= {f"query.{k}": v for k, v in block.queries._asdict().items()}
    if block.dead:
        arrays |= dead_letter_arrays(block.dead)
    return arrays


def sample_arrays(block: DecodedBlock, most: int) -> dict[str, NDArray[Any]]:
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
) -> tuple[StoreEntry | None, NDArray[np.float64]]:
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


def norms_of(block: DecodedBlock, first_seq: int, retained: Retained) -> NDArray[np.float64]:
    """Return the norm of each object of a block; without a lexicon every term weighs 1."""
    if retained.norm.size == 0:
        return np.sqrt(np.diff(block.objects.term_offsets).astype(np.float64))
    norms = np.empty(block.objects.total)
    norms[np.argsort(block.objects.event)] = retained.norm[np.argsort(retained.seq)]
    return norms
