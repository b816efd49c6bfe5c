"""Facts of a block: its file, its place in the log and its clock, as the coordinator has them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.clock import BlockClock


class BlockFacts(NamedTuple):
    """A block's file and its place in the log."""

    first_seq: int
    arrays: dict[str, NDArray[Any]]
    clock: BlockClock


def object_seqs(facts: BlockFacts) -> NDArray[np.int64]:
    """The seq of every object of the block."""
    return facts.first_seq + facts.arrays["object.event"].astype(np.int64)


def object_nows(facts: BlockFacts) -> NDArray[np.int64]:
    """The true `now` at every object of the block."""
    return facts.clock.nows(facts.arrays["object.event"], facts.arrays["object.now_us"])
