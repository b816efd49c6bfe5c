"""Run kernels over portions of rows on all cores; compiled kernels release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def run_in_portions(
    work: Callable[[int, int], list[T]], rows: int, min_rows: int, per_thread: int = 1
) -> list[T]:
    """Call `work(first, last)` on a thread per core, each with `min_rows` rows at least.

    Each thread gets `per_thread` portions. Returns their results in the order of rows.
    """
    threads = max(1, min(os.cpu_count() or 1, rows // min_rows))
    if threads == 1:
        return work(0, rows)
    cuts = np.linspace(0, rows, per_thread * threads + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(threads) as pool:
        return list(chain.from_iterable(pool.map(work, cuts[:-1], cuts[1:])))
