"""Segments: subscription rows, their index and their directory of ids in one immutable file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kinds.boolean.index import BooleanIndex, build_index, empty_index
from placewire.kinds.nearest.index import BallIndex, Deal, index_balls, one_part, points_of
from placewire.kinds.nearest.results import Neighbours, radii_of
from placewire.kinds.relevant.index import GroupIndex, LiteralDeal, index_parts
from placewire.kinds.relevant.kernels.buffers import Buffers
from placewire.kinds.relevant.results import buffer_arrays, read_buffers
from placewire.model.subscriptions import BOOLEAN, NEAREST, SubscriptionRows
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import SegmentEntry


class Segment(NamedTuple):
    """A segment in memory or mapped; `rows.id_hash` is empty when mapped, see `directory_*`.

    All its rows are of one kind. Those of `nearest` have an index of balls and results, those of
    `relevant` have buffers and for every part an index of groups, all as they were when the segment
    was made.
    """

    rows: SubscriptionRows
    boolean: BooleanIndex
    directory_hash: NDArray[np.uint64]
    directory_row: NDArray[np.uint32]
    balls: BallIndex | None = None
    neighbours: Neighbours | None = None
    buffers: Buffers | None = None
    groups: tuple[GroupIndex, ...] = ()
    dealt: LiteralDeal | None = None

    @property
    def kind(self) -> int:
        if self.rows.total:
            return int(self.rows.kind[0])
        return BOOLEAN if self.balls is None else NEAREST


NONE_DEAD = np.empty(0, np.uint64)
NO_INDEX = BooleanIndex(*map(read_only, empty_index()))


def make_segment(rows: SubscriptionRows, literal_count: NDArray[np.int64] | None = None) -> Segment:
    """Index boolean rows; their numbers stay."""
    rows = SubscriptionRows(*map(read_only, rows))
    index = BooleanIndex(*map(read_only, build_index(rows, literal_count)))
    return Segment(rows, index, *make_directory(rows))


def make_near_segment(
    rows: SubscriptionRows, neighbours: Neighbours, deal: Deal | None = None
) -> Segment:
    """Index `nearest` rows by the balls that their results leave them."""
    rows = SubscriptionRows(*map(read_only, rows))
    radius = radii_of(neighbours, points_of(rows)[2])
    return Segment(
        rows,
        NO_INDEX,
        *make_directory(rows),
        index_balls(rows, radius, deal or one_part(rows.total)),
        Neighbours(*map(read_only, neighbours)),
    )


def make_plain_segment(rows: SubscriptionRows) -> Segment:
    """Rows that are looked at one by one, with a directory of their ids alone."""
    rows = SubscriptionRows(*map(read_only, rows))
    return Segment(rows, NO_INDEX, *make_directory(rows))


def make_relevant_segment(
    rows: SubscriptionRows, buffers: Buffers, dealt: LiteralDeal | None = None
) -> Segment:
    """Index `relevant` rows by the thresholds that their buffers leave them."""
    rows = SubscriptionRows(*map(read_only, rows))
    groups = index_parts(rows, buffers.theta, dealt)
    return Segment(
        rows, NO_INDEX, *make_directory(rows), buffers=buffers, groups=groups, dealt=dealt
    )


def make_directory(rows: SubscriptionRows) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """The rows by the hash of their id: hashes, ascending, and rows."""
    order = np.argsort(rows.id_hash, kind="stable")
    return read_only(rows.id_hash[order]), read_only(order.astype(np.uint32))


def write_segment(path: Path, segment: Segment) -> int:
    """Write the segment to a new file; gives its size."""
    rows = segment.rows._asdict()
    del rows["id_hash"]  # the directory has it
    arrays = {f"rows.{name}": array for name, array in rows.items()}
    arrays |= {"directory.hash": segment.directory_hash, "directory.row": segment.directory_row}
    if segment.buffers is not None:
        arrays |= buffer_arrays(segment.buffers)
        for part, groups in enumerate(segment.groups):
            arrays |= {f"groups{part}.{name}": array for name, array in groups._asdict().items()}
        if segment.dealt is not None:
            arrays["dealt"] = segment.dealt.owner
        return write_arrays(path, arrays, {"groups": len(segment.groups)})
    if segment.balls is None or segment.neighbours is None:
        arrays |= {f"index.{name}": array for name, array in segment.boolean._asdict().items()}
        return write_arrays(path, arrays)
    balls = segment.balls
    arrays |= {"balls.centres": balls.centres, "balls.radius": balls.radius}
    arrays |= {"balls.owner": balls.deal.owner, "balls.cost": balls.deal.cost}
    arrays |= {f"neighbours.{k}": array for k, array in segment.neighbours._asdict().items()}
    for part, index in enumerate(balls.parts):
        arrays |= {f"index{part}.{name}": array for name, array in index._asdict().items()}
    return write_arrays(path, arrays, {"parts": balls.deal.parts, "longest": balls.longest})


def open_segment(path: Path) -> Segment:
    """Map a segment."""
    arrays, facts = open_arrays(path)
    rows = SubscriptionRows(
        id_hash=read_only(np.empty(0, np.uint64)),
        **{name: arrays[f"rows.{name}"] for name in SubscriptionRows._fields if name != "id_hash"},
    )
    directory = arrays["directory.hash"], arrays["directory.row"]

    def index(label: str) -> BooleanIndex:
        return BooleanIndex(**{name: arrays[f"{label}.{name}"] for name in BooleanIndex._fields})

    if "groups" in facts:
        groups = tuple(
            GroupIndex(*(arrays[f"groups{part}.{name}"] for name in GroupIndex._fields))
            for part in range(facts["groups"])
        )
        dealt = LiteralDeal(facts["groups"], arrays["dealt"]) if "dealt" in arrays else None
        return Segment(
            rows, NO_INDEX, *directory, buffers=read_buffers(arrays), groups=groups, dealt=dealt
        )
    if "parts" not in facts:
        return Segment(rows, index("index"), *directory)
    balls = BallIndex(
        arrays["balls.centres"],
        arrays["balls.radius"],
        Deal(facts["parts"], arrays["balls.owner"], arrays["balls.cost"]),
        tuple(index(f"index{part}") for part in range(facts["parts"])),
        tuple(facts["longest"]),
    )
    neighbours = Neighbours(*(arrays[f"neighbours.{name}"] for name in Neighbours._fields))
    return Segment(rows, NO_INDEX, *directory, balls, neighbours)


def whole_rows(segment: Segment) -> SubscriptionRows:
    """The rows with their id hashes put back from the directory."""
    if segment.rows.id_hash.size == segment.rows.total:
        return segment.rows
    hashes = np.empty(segment.rows.total, np.uint64)
    hashes[segment.directory_row] = segment.directory_hash
    return segment.rows._replace(id_hash=hashes)


def open_segments(
    state: StateDir, entries: Sequence[SegmentEntry]
) -> list[tuple[Segment, NDArray[np.uint64]]]:
    """Live segments with their ended rows, mapped."""
    return [
        (
            open_segment(state.file(entry.name)),
            NONE_DEAD if entry.dead is None else open_arrays(state.file(entry.dead)).arrays["bits"],
        )
        for entry in entries
    ]
