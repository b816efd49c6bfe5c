"""Write a batch's updates and reports to outbox files, in the order of the specification."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.kernels.json.results import matches_to_order
from placewire.kinds.object_ids import NamedObjects, concat_named_objects, take_texts
from placewire.kinds.shard import Changed, Reports
from placewire.model.subscriptions import (
    concat_offsets,
    take_slices,
)
from placewire.storage.arrays import write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import LinesEntry, UpdatesEntry


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
    added = concat_named_objects([part.added for part in changed]).take(adds)
    dropped = concat_named_objects([part.dropped for part in changed]).take(drops)
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
            **{f"add.{field}": getattr(added, field) for field in NamedObjects._fields[1:]},
            "drops": drop_offsets,
            **{f"drop.{field}": getattr(dropped, field) for field in NamedObjects._fields[1:]},
        },
    )
    return UpdatesEntry(name, int(seq.size))


def write_reports(state: StateDir, batch: int, made: Sequence[Reports]) -> LinesEntry | None:
    """Write the reports of a batch, by seq, subscription and due time."""
    made = [one for one in made if one.seq.size]
    if not made:
        return None
    seq = np.concatenate([one.seq for one in made])
    ids = [name for one in made for name in one.subscription]
    rank = {name: number for number, name in enumerate(sorted(set(ids)))}
    ranks = np.fromiter((rank[name] for name in ids), np.int64, len(ids))
    order = np.lexsort((np.concatenate([one.at_us for one in made]), ranks, seq))
    edges = concat_offsets([one.starts for one in made])
    starts, text = slices_to_buffer(
        read_only(np.concatenate([one.text for one in made])),
        read_only(edges[:-1][order]),
        read_only(edges[1:][order]),
    )
    name = state.new_name(batch, "reports")
    arrays = {"seq": seq[order], "plain.starts": starts, "plain.text": text}
    write_arrays(state.file(name), arrays)
    return LinesEntry(name, int(seq.size))
