"""Portions of rows on as many threads as there are cores: kernels run without the interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def in_portions(
    work: Callable[[int, int], list[T]], rows: int, worth: int, each: int = 1
) -> list[T]:
    """Do `work` for rows first:last, on at most one thread a core, each with `worth` rows at least.

    A thread takes `each` portions, one after another. What they give is put together in order.
    """
    threads = max(1, min(os.cpu_count() or 1, rows // worth))
    if threads == 1:
        return work(0, rows)
    cuts = np.linspace(0, rows, each * threads + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(threads) as pool:
        return list(chain.from_iterable(pool.map(work, cuts[:-1], cuts[1:])))
