"""`placewire replay`: a whole event log through the pipeline into a results file."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from placewire.cli.kernels import ready_kernels
from placewire.cli.progress import ProgressLine
from placewire.engine.coordinator import Coordinator
from placewire.engine.local import replay_log
from placewire.engine.log import check_log, identify_log
from placewire.engine.sink import FileSink
from placewire.model.errors import Unusable
from placewire.model.settings import read_settings
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest


class ReplayOptions(NamedTuple):
    """What the user typed."""

    log: Path
    results: Path
    dead_letters: Path | None
    settings: Path | None
    workers: int
    plan: str
    batch_rows: int
    state: Path | None
    with_data: bool
    runner: str


def run_replay(options: ReplayOptions) -> str:
    """Replay a log and give the summary line; raises Unusable."""
    check_log(options.log)
    for target in (options.results, options.dead_letters):
        if target is not None:
            check_target(target)
    settings = read_settings(options.settings)
    with state_directory(options.state) as root:
        started = time.monotonic()
        coordinator = Coordinator(
            StateDir(root), settings, identify_log(options.log), options.plan, options.workers
        )
        try:
            sink = FileSink(coordinator.state, options.with_data)
            assert coordinator.latest is not None
            before = coordinator.latest.counters.events
            if before:
                print(f"resuming after event {before - 1}", file=sys.stderr)
                sink.deliver(coordinator.latest)
            run_batches(options, coordinator, sink)
            sink.copy_out(options.results, options.dead_letters)
            counters = coordinator.latest.counters
        finally:
            coordinator.close()
        seconds = max(time.monotonic() - started, 1e-9)
    return (
        f"events {counters.events}, results {counters.results},"
        f" dead letters {counters.dead_letters},"
        f" unsubscribes of nothing {counters.idle_unsubscribes},"
        f" {(counters.events - before) / seconds:.0f} events/s"
    )


def run_batches(options: ReplayOptions, coordinator: Coordinator, sink: FileSink) -> None:
    """Run what is left of the log, delivering and showing progress after each commit."""
    size = options.log.stat().st_size
    if size and options.runner == "spark":
        ready_kernels(options.plan)
    with ProgressLine("replay", size) as progress:

        def after(manifest: Manifest) -> None:
            sink.deliver(manifest)
            coordinator.delivered = manifest.batch
            seconds = time.monotonic() - progress.started
            rate = manifest.counters.events / max(seconds, 1e-9)
            progress.update(
                manifest.offset["byte"],
                f"{manifest.counters.events} events, {rate:.0f}/s,"
                f" {manifest.counters.results} results",
            )

        if size == 0:
            return
        if options.runner == "local":
            for _ in replay_log(
                coordinator, options.log, options.batch_rows, options.workers, after
            ):
                pass
            return
        # Imported late: the in-process runner needs no Spark.
        from placewire.spark.java import find_java
        from placewire.spark.replay import replay_on_spark
        from placewire.spark.session import make_session

        java = find_java()
        print(f"Spark runs on {java.line()}", file=sys.stderr)
        session = make_session(f"local[{min(options.workers, os.cpu_count() or 1)}]", java=java)
        try:
            replay_on_spark(
                session,
                coordinator,
                options.log,
                batch_rows=options.batch_rows,
                workers=options.workers,
                after=after,
            )
        finally:
            session.stop()


def check_target(path: Path) -> None:
    """Refuse a target that cannot be written before any work is done."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise Unusable(f"{path}: cannot be written: not a file in an existing directory")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise Unusable(f"{path}: cannot be written: permission denied")


@contextlib.contextmanager
def state_directory(given: Path | None) -> Iterator[Path]:
    """The state directory: the user's, or one that goes away with the run."""
    if given is not None:
        yield given.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="placewire-") as folder:
        yield Path(folder) / "state"
