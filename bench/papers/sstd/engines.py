"""Engines that answer snapshot queries, and their timing; all must give the same answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyspark.sql import SparkSession

from bench.papers.sstd.data import DAYS, RetainedObjects
from bench.papers.sstd.queries import KINDS, Answer, Engine, Query, same_answer
from bench.peers.duckdb_snapshots import Duck
from bench.peers.scan_snapshots import Scan
from bench.peers.spark_snapshots import Spark
from placewire import api

OURS = "Placewire"
FRONT_DOOR = "open_snapshot"


class Opened(NamedTuple):
    """An engine with the objects in it, and the seconds that took."""

    engine: Engine
    load_s: float


class Placewire:
    """The state of a replayed log, through the front door of the library."""

    name = OURS
    kinds = KINDS

    def __init__(self, retained: RetainedObjects, folder: Path) -> None:
        folder.mkdir(parents=True)
        settings = {"retention": f"P{DAYS}D"}
        state = folder / "state"
        api.replay(retained.log, folder / "results.jsonl", state=state, settings=settings)
        self._open = ExitStack()
        self.snapshot = self._open.enter_context(getattr(api, FRONT_DOOR)(state))

    def answer(self, query: Query) -> Answer:
        found: Answer = self.snapshot.answer(query)
        return found

    def close(self) -> None:
        self._open.close()


def is_ours_there() -> bool:
    """Whether this version of Placewire answers snapshot queries."""
    return hasattr(api, FRONT_DOOR)


def is_tantivy_there() -> bool:
    """Whether tantivy is installed; the other experiments need nothing of it."""
    return find_spec("tantivy") is not None


@contextmanager
def open_engines(
    retained: RetainedObjects, folder: Path, session: SparkSession | None
) -> Iterator[list[Opened]]:
    """All engines over the same objects, the slowest last; the scan is the first."""
    makers: list[Callable[[], Engine]] = [lambda: Scan(retained)]
    if is_ours_there():
        makers.append(lambda: Placewire(retained, folder / "ours"))
    if is_tantivy_there():
        from bench.peers.tantivy_snapshots import Tantivy

        makers.append(lambda: Tantivy(retained, folder / "tantivy"))
    makers.append(lambda: Duck(retained, folder / "duck"))
    if session is not None:
        makers.append(lambda: Spark(retained, session))
    with ExitStack() as stack:
        opened = []
        for make in makers:
            started = time.perf_counter()
            engine = stack.enter_context(closing(make()))
            opened.append(Opened(engine, time.perf_counter() - started))
        yield opened


WARM = 3  # queries of each setting that are asked once before the clock runs
WARM_S, WARM_QUERIES = 10.0, 400  # for each engine before all settings: a JVM takes long to warm
CHECKED = 20  # answers that are compared with those of the scan
BUDGET_S, FEWEST = 1.0, 20  # a slow engine gets the first of the queries, at least so many
HEADER = ("engine", "queries", "same answers", "p50, ms", "p95, ms", "p99, ms")


class Timing(NamedTuple):
    """The milliseconds of each query, and how many of the answers that were checked are right."""

    engine: str
    ms: np.ndarray
    checked: int
    same: int
    is_truth: bool

    @property
    def p50(self) -> float:
        return float(np.median(self.ms))

    def row(self) -> tuple[object, ...]:
        p50, p95, p99 = np.percentile(self.ms, (50, 95, 99)).tolist()
        agreed = "the measure" if self.is_truth else f"{self.same} of {self.checked}"
        return self.engine, self.ms.size, agreed, p50, p95, p99


def warm_up(opened: Sequence[Opened], queries: Sequence[Query]) -> None:
    """Queries of all kinds in turn, until there were enough or the time is up."""
    for engine, _ in opened:
        asked = [query for query in queries if query["kind"] in engine.kinds]
        started = time.perf_counter()
        for query in asked[:WARM_QUERIES]:
            engine.answer(query)
            if time.perf_counter() - started > WARM_S:
                break


def time_engines(opened: Sequence[Opened], queries: Sequence[Query]) -> list[Timing]:
    """Each engine that can answer these queries, in turn; the first is the one that is right."""
    truth = [opened[0].engine.answer(query) for query in queries[:CHECKED]]
    return [
        time_engine(engine, queries, truth)._replace(is_truth=engine is opened[0].engine)
        for engine, _ in opened
        if queries[0]["kind"] in engine.kinds
    ]


def time_engine(engine: Engine, queries: Sequence[Query], truth: Sequence[Answer]) -> Timing:
    for query in queries[:WARM]:
        engine.answer(query)
    ms: list[float] = []
    answers: list[Answer] = []
    for query in queries:
        started = time.perf_counter()
        answer = engine.answer(query)
        ms.append(1e3 * (time.perf_counter() - started))
        answers.append(answer)
        if len(ms) >= FEWEST and sum(ms) > 1e3 * BUDGET_S:
            break
    checked = min(len(truth), len(answers))
    same = sum(map(same_answer, truth[:checked], answers[:checked]))
    return Timing(engine.name, np.array(ms), checked, same, is_truth=False)


def find_base(timings: Sequence[Timing]) -> str:
    """Whom the ratios are to: us, or tantivy while we are not there."""
    names = [timing.engine for timing in timings]
    return next(name for name in (OURS, "tantivy", names[0]) if name in names)


def ratio(timing: Timing, base: Timing, percentile: int = 50) -> float:
    """How many times the base's milliseconds an engine takes, by the queries that both had."""
    count = min(timing.ms.size, base.ms.size)
    theirs, ours = (np.percentile(t.ms[:count], percentile) for t in (timing, base))
    return float(theirs / ours)


def with_ratios(timings: Sequence[Timing], base_name: str) -> list[tuple[object, ...]]:
    """A row of a table for each engine."""
    base = next((t for t in timings if t.engine == base_name), timings[0])
    return [(*t.row(), ratio(t, base), ratio(t, base, 95)) for t in timings]
