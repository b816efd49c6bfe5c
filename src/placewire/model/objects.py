"""Objects as columns: decoding builds them from a block, matching reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class ObjectRows(NamedTuple):
    """n objects of one block, in log order; `event` is the position in the block's lines.

    `now_us` is the clock at the object as known from the block alone; earlier blocks may raise it.
    `data` is compact JSON, empty for an object that carries none.
    """

    event: NDArray[np.uint32]
    ts_us: NDArray[np.int64]
    now_us: NDArray[np.int64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    id_offsets: NDArray[np.int64]
    id_bytes: NDArray[np.uint8]
    data_offsets: NDArray[np.int64]
    data_bytes: NDArray[np.uint8]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]

    @property
    def total(self) -> int:
        return int(self.event.size)

    def columns(self, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
        """Some of the columns by name."""
        return {name: getattr(self, name) for name in names}
