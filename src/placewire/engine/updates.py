"""Updates: what entered and left results of a batch, named and in order, as an outbox file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placewire.engine.entering import Entered
from placewire.engine.facts import BlockFacts, object_seqs
from placewire.kernels.jit import read_only
from placewire.kernels.resultlines import matches_to_order
from placewire.model.subscriptions import concat_offsets, lengths_to_offsets
from placewire.state.arrays import write_arrays
from placewire.state.layout import StateDir
from placewire.state.manifest import UpdatesEntry
from placewire.state.roster import Named, Rosters, concat_named, take_texts

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


def write_updates(
    state: StateDir,
    batch: int,
    facts: Sequence[BlockFacts],
    entered: Sequence[Entered],
    rosters: Rosters,
) -> UpdatesEntry | None:
    """Write the batch's updates by (seq, subscription id), and the roster of what entered."""
    entered = [part for part in entered if part.row.size]
    if not entered:
        return None
    seq, objects, distance, dropped = (
        np.concatenate(column) for column in list(zip(*entered, strict=True))[2:]
    )
    names = name_objects(facts)
    newcomers = np.unique(objects)
    newcomers = newcomers[np.argsort(names.seq[newcomers])]
    rosters.add(batch, names.take(newcomers))
    id_offsets, id_bytes = name_subscriptions(entered)
    order = matches_to_order(read_only(seq), read_only(id_offsets), read_only(id_bytes))
    offsets, texts = take_texts(id_offsets, id_bytes, order)
    added = names.take(objects[order])
    left = name_dropped(dropped[order], rosters)
    name = state.new_name(batch, "updates")
    write_arrays(
        state.file(name),
        {
            "seq": seq[order],
            "distance": distance[order],
            "subscription_offsets": offsets,
            "subscription_bytes": texts,
            **{f"add.{field}": getattr(added, field) for field in Named._fields[1:]},
            **{f"drop.{field}": getattr(left, field) for field in Named._fields[1:]},
        },
    )
    return UpdatesEntry(name, int(seq.size))


def name_subscriptions(
    entered: Sequence[Entered],
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The id of the subscription of every entry."""
    offsets, ids = [], []
    for part in entered:
        some, texts = take_texts(part.rows.id_offsets, part.rows.id_bytes, part.row)
        offsets.append(some)
        ids.append(texts)
    return concat_offsets(offsets), np.concatenate(ids)


def name_dropped(dropped: NDArray[np.int64], rosters: Rosters) -> Named:
    """The objects that were dropped, with an empty id where none was."""
    some = np.flatnonzero(dropped >= 0)
    found = rosters.find(dropped[some])
    lengths = np.zeros((2, dropped.size), np.int64)
    lengths[0, some] = np.diff(found.id_offsets)
    lengths[1, some] = np.diff(found.data_offsets)
    ids, data = map(lengths_to_offsets, lengths)
    return Named(dropped, ids, found.id_bytes, data, found.data_bytes)
