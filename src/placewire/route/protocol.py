"""Routes: which worker must see an object. The null one sends nothing anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Route(Protocol):
    """Names the workers of objects by their cell codes."""

    @property
    def stays(self) -> bool:
        """Whether objects are matched where they were read."""

    def cut(self, codes: NDArray[np.uint32]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """For each worker that must see any, the positions of its objects, ascending."""

    def loads(self, codes: NDArray[np.uint32]) -> list[tuple[int, int]]:
        """(cell, objects) of the plan's own cells, for its next version."""


class StayRoute:
    """Plan `shared`: every process maps the same segments, so no object moves."""

    stays = True

    def cut(self, codes: NDArray[np.uint32]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        raise AssertionError("objects of a shared plan stay where they were read")

    def loads(self, codes: NDArray[np.uint32]) -> list[tuple[int, int]]:
        return []


class CellRoute:
    """Plan `grid`: a worker for each of the equal cells of one level."""

    stays = False

    def __init__(self, level: int, workers: NDArray[np.int32]) -> None:
        self.level = level
        self.workers = workers

    def cells(self, codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
        return codes >> np.uint32(2 * (16 - self.level))

    def cut(self, codes: NDArray[np.uint32]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        owners = self.workers[self.cells(codes)]
        for worker in np.unique(owners).tolist():
            yield worker, np.flatnonzero(owners == worker)

    def loads(self, codes: NDArray[np.uint32]) -> list[tuple[int, int]]:
        cells, counts = np.unique(self.cells(codes), return_counts=True)
        return list(zip(cells.tolist(), counts.tolist(), strict=True))
