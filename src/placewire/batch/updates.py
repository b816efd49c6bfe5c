"""Updates: what entered and left results of a batch, named and in order, as an outbox file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import BlockFacts, object_seqs
from placewire.kernels.jit import read_only
from placewire.kernels.json.results import matches_to_order
from placewire.kinds.nearest.settle import Entered
from placewire.kinds.object_ids import Named, Rosters, concat_named, take_texts
from placewire.kinds.relevant.refill import Hunter
from placewire.kinds.relevant.settle import Slid
from placewire.model.subscriptions import (
    SubscriptionRows,
    concat_offsets,
    lengths_to_offsets,
    take_slices,
)
from placewire.storage.arrays import write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import UpdatesEntry

NO_BYTES = np.empty(0, np.uint8)


def name_objects(facts: Sequence[BlockFacts]) -> Named:
    """All objects of the batch, block after block, in the order of each block's file."""
    parts = []
    for fact in facts:
        a = fact.arrays
        objects = a["object.event"].size
        parts.append(
            Named(
                object_seqs(fact),
                a["object.id_offsets"],
                a["object.id_bytes"],
                a.get("object.data_offsets", np.zeros(objects + 1, np.int64)),
                a.get("object.data_bytes", NO_BYTES),
            )
        )
    return concat_named(parts)


class Changed(NamedTuple):
    """Updates of subscriptions: whose, at which event, and the objects added and dropped.

    Subscriptions are given by their ids; `adds` and `drops` are CSR columns of objects by name.
    `scored` tells a score from a distance; `measure` is of the objects that were added.
    """

    seq: NDArray[np.int64]
    id_offsets: NDArray[np.int64]
    id_bytes: NDArray[np.uint8]
    scored: bool
    add_offsets: NDArray[np.int64]
    added: Named
    measure: NDArray[np.float64]
    drop_offsets: NDArray[np.int64]
    dropped: Named


def name_entered(
    batch: int, facts: Sequence[BlockFacts], entered: Sequence[Entered], rosters: Rosters
) -> list[Changed]:
    """Updates of `nearest` subscriptions; what entered goes into a roster, to be named later."""
    entered = [part for part in entered if part.row.size]
    if not entered:
        return []
    names = name_objects(facts)
    newcomers = np.unique(np.concatenate([part.object for part in entered]))
    rosters.add(batch, names.take(newcomers[np.argsort(names.seq[newcomers])]))
    return [
        Changed(
            part.seq,
            *take_texts(part.rows.id_offsets, part.rows.id_bytes, part.row),
            False,
            np.arange(part.row.size + 1),
            names.take(part.object),
            part.distance,
            lengths_to_offsets((part.dropped >= 0).astype(np.int64)),
            rosters.find(part.dropped[part.dropped >= 0]),
        )
        for part in entered
    ]


def name_slid(rows: SubscriptionRows, slid: Sequence[Slid], hunter: Hunter) -> list[Changed]:
    """Updates of `relevant` subscriptions of one segment; the store knows all their objects."""
    changed = []
    for part in slid:
        if part.row.size == 0:
            continue
        seqs, at = np.unique(np.concatenate([part.add_seq, part.drop_seq]), return_inverse=True)
        names = hunter.name(seqs)
        changed.append(
            Changed(
                part.seq,
                *take_texts(rows.id_offsets, rows.id_bytes, part.row),
                True,
                part.add_offsets,
                names.take(at[: part.add_seq.size]),
                part.add_nano / 1e9,
                part.drop_offsets,
                names.take(at[part.add_seq.size :]),
            )
        )
    return changed


def write_updates(state: StateDir, batch: int, changed: Sequence[Changed]) -> UpdatesEntry | None:
    """Write the batch's updates by (seq, subscription id)."""
    if not changed:
        return None
    seq = np.concatenate([part.seq for part in changed])
    id_offsets = concat_offsets([part.id_offsets for part in changed])
    id_bytes = np.concatenate([part.id_bytes for part in changed])
    order = matches_to_order(read_only(seq), read_only(id_offsets), read_only(id_bytes))
    offsets, texts = take_texts(id_offsets, id_bytes, order)
    add_offsets, adds = take_slices(concat_offsets([p.add_offsets for p in changed]), order)
    drop_offsets, drops = take_slices(concat_offsets([p.drop_offsets for p in changed]), order)
    added = concat_named([part.added for part in changed]).take(adds)
    dropped = concat_named([part.dropped for part in changed]).take(drops)
    scored = np.concatenate([np.full(part.seq.size, part.scored) for part in changed])
    name = state.new_name(batch, "updates")
    write_arrays(
        state.file(name),
        {
            "seq": seq[order],
            "scored": scored[order],
            "subscription_offsets": offsets,
            "subscription_bytes": texts,
            "adds": add_offsets,
            "measure": np.concatenate([part.measure for part in changed])[adds],
            **{f"add.{field}": getattr(added, field) for field in Named._fields[1:]},
            "drops": drop_offsets,
            **{f"drop.{field}": getattr(dropped, field) for field in Named._fields[1:]},
        },
    )
    return UpdatesEntry(name, int(seq.size))
