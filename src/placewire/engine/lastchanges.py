"""The changes of one id in the blocks of the last commits: what made it, replaced it, ended it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placewire.engine.ground import rows_of_id
from placewire.model.subscriptions import SubscriptionRows, take_rows
from placewire.state.arrays import open_arrays
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest, committed_batches, read_manifest


class Change(NamedTuple):
    """An event that changed an id: its seq, and the subscription that it made, if it made one."""

    seq: int
    rows: SubscriptionRows | None


def last_manifests(state: StateDir) -> list[Manifest]:
    """The manifests that are there, oldest first: at least the last few."""
    return [read_manifest(state, batch) for batch in committed_batches(state)]


def changes_of_id(state: StateDir, manifests: Sequence[Manifest], name: str) -> list[Change]:
    """The changes of an id that these manifests' blocks have, in order of seq."""
    found: list[Change] = []
    for manifest in manifests:
        refused: set[int] = set()
        if manifest.late_dead is not None:
            late = open_arrays(state.file(manifest.late_dead)).arrays
            refused = set(late["dead.event"].tolist())
        for block in manifest.blocks:
            arrays = open_arrays(state.file(block.file)).arrays
            if "change.event" not in arrays:
                continue
            for at in rows_of_id(arrays["change.id_offsets"], arrays["change.id_bytes"], name):
                seq = block.first_seq + int(arrays["change.event"][at])
                if seq in refused:
                    continue
                row, made = int(arrays["change.row"][at]), None
                if row >= 0:
                    columns = {n: arrays[f"rows.{n}"] for n in SubscriptionRows._fields}
                    made = take_rows(SubscriptionRows(**columns), np.array([row]))
                found.append(Change(seq, made))
    return sorted(found, key=lambda change: change.seq)


def known_since(manifests: Sequence[Manifest]) -> int:
    """From which event on they tell all that an id was: the last one of the oldest of them.

    Its blocks may have ended what was there before. Of a log's beginning nothing was before.
    """
    return 0 if not first_seq_of(manifests) else manifests[0].next_seq - 1


def first_seq_of(manifests: Sequence[Manifest]) -> int | None:
    """How far back their blocks go; there are none of an empty log."""
    return min((block.first_seq for m in manifests for block in m.blocks), default=None)
