"""Who answers in the snapshot experiments: Placewire, its peers, and the scan they must equal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from bench.peers.snapshot_duck import Duck
from bench.peers.snapshot_scan import Scan
from bench.peers.snapshot_spark import Spark
from bench.snapshot_data import DAYS, Retained
from bench.snapshot_queries import KINDS, Answer, Engine, Query
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

    def __init__(self, retained: Retained, folder: Path) -> None:
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
    retained: Retained, folder: Path, session: SparkSession | None
) -> Iterator[list[Opened]]:
    """All engines over the same objects, the slowest last; the scan is the first."""
    makers: list[Callable[[], Engine]] = [lambda: Scan(retained)]
    if is_ours_there():
        makers.append(lambda: Placewire(retained, folder / "ours"))
    if is_tantivy_there():
        from bench.peers.snapshot_tantivy import Tantivy

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
