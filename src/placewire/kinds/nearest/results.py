"""Neighbours: the current results of `nearest` subscriptions, and what changed of them.

A segment's file has the results of its rows as they were when it was written. Each batch adds a
delta: the candidates that entered, by (row, seq), and the radii that shrank. Applying the deltas in
order gives the results of the last commit; radii only shrink, so of them any order will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kinds.nearest.kernels.top_k import (
    candidates_into_results,
    results_to_radii,
    slots_taken,
)
from placewire.model.subscriptions import concat_offsets, lengths_to_offsets


class Neighbours(NamedTuple):
    """Results of n rows: row r's are in slots offsets[r]:offsets[r + 1], the first `counts[r]`."""

    offsets: NDArray[np.int64]
    counts: NDArray[np.int32]
    distance: NDArray[np.float64]
    seq: NDArray[np.int64]

    def copy(self) -> Neighbours:
        return Neighbours(
            self.offsets.copy(), self.counts.copy(), self.distance.copy(), self.seq.copy()
        )


class Entrants(NamedTuple):
    """Candidates by (row, seq) that entered results."""

    row: NDArray[np.uint32]
    seq: NDArray[np.int64]
    distance: NDArray[np.float64]


class Radii(NamedTuple):
    """Rows whose radius shrank, and to what."""

    row: NDArray[np.uint32]
    radius: NDArray[np.float64]


def no_neighbours(ks: NDArray[np.uint16]) -> Neighbours:
    """Empty results, with room for k each."""
    offsets = lengths_to_offsets(ks.astype(np.int64))
    slots = int(offsets[-1])
    return Neighbours(
        offsets, np.zeros(ks.size, np.int32), np.zeros(slots), np.zeros(slots, np.int64)
    )


def take_neighbours(neighbours: Neighbours, picked: NDArray[np.int64]) -> Neighbours:
    """The results of some rows."""
    offsets, counts, distance, seq = map(read_only, neighbours)
    return Neighbours(*slots_taken(offsets, counts, distance, seq, read_only(picked)))


def concat_neighbours(parts: Sequence[Neighbours]) -> Neighbours:
    """The results of all rows of `parts`."""
    return Neighbours(
        concat_offsets([p.offsets for p in parts]),
        np.concatenate([p.counts for p in parts]),
        np.concatenate([p.distance for p in parts]),
        np.concatenate([p.seq for p in parts]),
    )


def enter(
    neighbours: Neighbours, candidates: Entrants
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Apply candidates by (row, seq) in place: which entered, and the seq each dropped or -1."""
    rows, seqs, distances = map(read_only, candidates)
    entered, dropped = candidates_into_results(
        rows,
        seqs,
        distances,
        read_only(neighbours.offsets),
        neighbours.counts,
        neighbours.distance,
        neighbours.seq,
    )
    return entered, dropped


def radii_of(neighbours: Neighbours, within_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far away an object may be and still enter."""
    radii: NDArray[np.float64] = results_to_radii(
        read_only(neighbours.offsets),
        read_only(neighbours.counts),
        read_only(neighbours.distance),
        read_only(within_m),
    )
    return radii


def delta_arrays(label: str, entrants: Entrants, radii: Radii) -> dict[str, NDArray[Any]]:
    """A delta as arrays of a file."""
    return {f"{label}.{name}": array for part in (entrants, radii) for name, array in named(part)}


def named(part: Entrants | Radii) -> list[tuple[str, NDArray[Any]]]:
    kind = "entrant" if isinstance(part, Entrants) else "radius"
    return [(f"{kind}.{name}", array) for name, array in part._asdict().items()]


def read_entrants(arrays: dict[str, NDArray[Any]], label: str) -> Entrants:
    return Entrants(*(arrays[f"{label}.entrant.{name}"] for name in Entrants._fields))


def read_radii(arrays: dict[str, NDArray[Any]], label: str) -> Radii:
    return Radii(*(arrays[f"{label}.radius.{name}"] for name in Radii._fields))
