"""Warming Spark's Python workers while the query starts: each takes seconds of one core."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from threading import Thread

import pyarrow as pa
from pyspark.sql import SparkSession

from placewire.engine.warming import USUAL, warm_kernels
from placewire.model.settings import Settings


def warm_workers(session: SparkSession, plan: str, run: Settings = USUAL) -> Thread:
    """Let every core start a Python worker and load the kernels of a run, beside what follows.

    It only saves time: whatever fails here would fail, and be told, in the first batch.
    """

    def warm() -> None:
        cores = session.sparkContext.defaultParallelism
        with contextlib.suppress(Exception):
            rows = session.range(0, cores, 1, cores)
            rows.mapInArrow(partial(load_kernels, plan, run), "id long").toArrow()

    thread = Thread(target=warm, name="placewire-warming", daemon=True)
    thread.start()
    return thread


def load_kernels(
    plan: str, run: Settings, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Load kernels in the worker that runs this; rows pass through."""
    warm_kernels(plan, run)
    yield from batches
