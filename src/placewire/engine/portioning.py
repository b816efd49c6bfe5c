"""Portions of rows on as many threads as there are cores: kernels run without the interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def in_portions(work: Callable[[int, int], list[T]], rows: int, worth: int) -> list[T]:
    """Do `work` for rows first:last in portions, at most one a core and each `worth` a thread."""
    portions = max(1, min(os.cpu_count() or 1, rows // worth))
    if portions == 1:
        return work(0, rows)
    cuts = np.linspace(0, rows, portions + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(portions) as threads:
        futures = [threads.submit(work, first, last) for first, last in pairwise(cuts)]
        return list(chain.from_iterable(future.result() for future in futures))
