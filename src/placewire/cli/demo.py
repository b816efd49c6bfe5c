"""`placewire demo`: an hour of city life through the whole pipeline, to watch."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console

from placewire.city import (
    CityLife,
    count_events,
    readable_queries,
    readable_subscriptions,
    write_log,
)
from placewire.cli.dashboard import Dashboard
from placewire.cli.figures import Figures
from placewire.cli.kernels import ready_kernels
from placewire.cli.progress import ProgressLine
from placewire.cli.replay import WARMING_ENDS_S
from placewire.cli.samples import Listener, LogLines
from placewire.cli.summary import print_summary
from placewire.engine.coordinator import Coordinator
from placewire.engine.log import identify_log
from placewire.engine.outbox import dead_letters
from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.model.times import parse_duration
from placewire.spark.java import Java, find_java
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHURN = 0.02
BAD = 24
WINDOW = "PT20M"  # the sliding window: an hour of time would never let anything go
BATCH_ROWS = 25_000  # small enough that the view moves, large enough that Spark is not all there is
LEAST_BATCHES = 10
TELLING = "lon must"  # the beginning of the dead letter to show, if there is such a one


class DemoOptions(NamedTuple):
    """What the user typed."""

    objects: int
    subscriptions: int
    seed: int
    workers: int
    json: bool = False


def run_demo(options: DemoOptions) -> None:
    """Generate, play, show, sum up; raises Unusable."""
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    started_s = time.monotonic()
    console = Console(highlight=False, stderr=options.json)
    java = find_java()
    life = CityLife(
        seed=options.seed,
        objects=options.objects,
        subscriptions=options.subscriptions,
        churn=CHURN,
        bad=BAD,
    )
    console.print(
        f"Placewire demo: an hour of city life, {life.objects:,} texts from 150 cities,\n"
        f"matched with {life.subscriptions:,} standing subscriptions, and {life.queries} queries,"
        f" on Spark\nwith {options.workers} worker{'s' if options.workers > 1 else ''},"
        f" which runs on {java.line()}."
    )
    with tempfile.TemporaryDirectory(prefix="placewire-demo-") as folder:
        log = Path(folder) / "hour.jsonl"
        events = generate(life, log)
        ready_kernels()
        coordinator = Coordinator(
            StateDir(Path(folder) / "state"),
            demo_settings(),
            identify_log(log),
            workers=options.workers,
        )
        try:
            with started_spark(console, options, java, Path(folder) / "spark.log") as session:
                play(console, session, coordinator, log, events, options, started_s)
        finally:
            coordinator.close()


def demo_settings() -> Settings:
    """The usual settings, with a sliding window of time that slides within the hour."""
    return Settings(window_count=None, window_us=parse_duration(WINDOW))


def generate(life: CityLife, log: Path) -> int:
    """Write the log, with progress; gives its number of events."""
    with ProgressLine("writing the log", count_events(life)) as progress:

        def show(done: int, total: int) -> None:
            progress.update(done, f"{done:,} of {total:,} events")

        try:
            return write_log(life, log, show)
        except OSError as error:
            raise Unusable(f"{log}: cannot be written: {error.strerror}") from None


def play(
    console: Console,
    session: SparkSession,
    coordinator: Coordinator,
    log: Path,
    events: int,
    options: DemoOptions,
    started_s: float,
) -> None:
    """Run the log through the pipeline in view of the user, and sum up."""
    from placewire.engine.reading import LogSource
    from placewire.spark.replay import replay_on_spark

    readable = readable_subscriptions()[: options.subscriptions]
    queries = [query.event for query in readable_queries()]
    listener = Listener(coordinator.state, LogLines(log), readable, queries)
    figures = Figures(coordinator.state, events, time.monotonic())
    letters: list[dict[str, Any]] = []
    relevant = listener.of_kind("relevant")
    with Dashboard(console, figures, readable, WINDOW) as dashboard:

        def after(manifest: Manifest) -> None:
            figures.commit(manifest, time.monotonic())
            samples = listener.hear(manifest)
            dashboard.update(samples, [one for name in relevant for one in listener.members(name)])
            letters.extend(dead_letters(coordinator.state, manifest))
            coordinator.delivered = manifest.batch
            figures.begin_batch(time.monotonic())

        replay_on_spark(
            session,
            coordinator,
            LogSource(str(log)),
            batch_rows=max(1, min(BATCH_ROWS, events // LEAST_BATCHES)),
            workers=options.workers,
            after=after,
        )
    took_s = time.monotonic() - started_s
    print_summary(console, figures, listener, choose_letter(letters), took_s, WINDOW)
    if options.json:
        print(json.dumps(total_facts(figures, took_s)))


def total_facts(figures: Figures, took_s: float) -> dict[str, Any]:
    """The totals, for programs."""
    counters = figures.counters
    return {
        "events": counters.events,
        "objects": counters.objects,
        "results": counters.results,
        "dead_letters": counters.dead_letters,
        "objects_per_s": round(figures.mean("objects"), 1),
        "seconds": round(took_s, 3),
    }


def choose_letter(letters: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The dead letter that needs the least explaining."""
    telling = [letter for letter in letters if letter["error"].startswith(TELLING)]
    return next(iter(telling or letters), None)


@contextlib.contextmanager
def started_spark(
    console: Console, options: DemoOptions, java: Java, chatter: Path
) -> Iterator[SparkSession]:
    """A Spark session whose own words go to a file and not over the view."""
    from placewire.spark.session import local_master, make_session
    from placewire.spark.warming import warm_workers

    logging.disable(logging.ERROR)  # after Ctrl-C the gateway tells the root logger at length
    master = local_master(min(options.workers, os.cpu_count() or 1))
    with console.status("starting Spark"):
        try:
            session = make_session(master, java=java, brief=True, chatter=chatter)
        except Exception as error:
            said = chatter.read_text(errors="replace").split("\n")
            why = next((line for line in reversed(said) if line.strip()), str(error))
            raise Unusable(f"Spark did not start: {why.strip()}") from error
    # Spark's own handler talks to the JVM in the middle of another call to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warming = warm_workers(session, "shared")
    try:
        yield session
    finally:
        with contextlib.suppress(Exception):  # after Ctrl-C it may be gone
            session.stop()
        warming.join(WARMING_ENDS_S)
