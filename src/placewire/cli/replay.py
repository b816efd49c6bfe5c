"""`placewire replay`: run an event log through the pipeline into a results file."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from placewire.api import replay
from placewire.batch.resize import read_workers
from placewire.cli.output import CommandSummary, ProgressLine
from placewire.cli.startup import mute_spark_log, ready_kernels
from placewire.ingest.log import check_lines
from placewire.model.errors import Unusable
from placewire.model.settings import Settings, read_settings
from placewire.plans.names import PLANS, UNPLANNED, named_plan, parse_plans
from placewire.plans.sample.sampler import SAMPLE_EVENTS
from placewire.storage.manifest import LeafPlanEntry, Manifest, RowPlanEntry

WARMING_TIMEOUT_S = 20.0


class ReplayOptions(NamedTuple):
    """The options of the command."""

    log: Path
    results: Path
    dead_letters: Path | None
    settings: Path | None
    workers: str | None  # None: as many as a saved plan is for, or all cores
    plan: str
    batch_rows: int
    state: Path | None
    with_data: bool
    runner: str
    slice: str | None = None
    archive: Path | None = None
    buffer: str = "cskyband"
    rebalance: str = "auto"


def run_replay(options: ReplayOptions) -> CommandSummary:
    """Replay a log and summarize the run; raises Unusable."""
    check_lines(options.log)
    outputs = [path for path in (options.results, options.dead_letters) if path is not None]
    for output in outputs:
        check_writable(output)
        if output.resolve() == options.log.resolve():
            raise Unusable(f"{output}: cannot be written: it is the log itself")
    if len({output.resolve() for output in outputs}) < len(outputs):
        raise Unusable(f"{options.results}: cannot hold both the results and the dead letters")
    settings = read_settings(options.settings)
    options = options._replace(workers=options.workers or str(most_workers(options)))
    before = 0
    last: list[Manifest] = []

    def note_start(manifest: Manifest) -> None:
        nonlocal before
        before = manifest.counters.events
        if before:
            print(f"resuming after event {before - 1}", file=sys.stderr)

    with (
        tempfile.TemporaryDirectory(prefix="placewire-dead-") as folder,
        ProgressLine("replay", options.log.stat().st_size) as progress,
        replay_session(progress) as start,
    ):
        dead = options.dead_letters or Path(folder) / "dead.jsonl"

        def show_batch(manifest: Manifest) -> None:
            plan = manifest.leaf_plan
            if last and plan.workers != last[0].leaf_plan.workers:
                progress.print_line(f"after batch {manifest.batch}: {plan.sized}")
            last[:] = [manifest]
            if plan.changed == manifest.batch:
                progress.print_line(f"rebalanced after batch {manifest.batch}: {plan.why}")
            done = manifest.counters.events - before
            rate = done / max(time.monotonic() - progress.started, 1e-9)
            progress.update(
                manifest.offset.byte,
                f"{manifest.counters.events} events, {rate:.0f}/s,"
                f" {manifest.counters.results} results",
            )

        totals = replay(
            options.log,
            options.results,
            dead_letters=dead,
            settings=settings,
            workers=options.workers,
            plan=options.plan,
            batch_rows=options.batch_rows,
            state=options.state,
            with_data=options.with_data,
            slice=options.slice,
            archive=options.archive,
            buffer=options.buffer,
            rebalance=options.rebalance,
            session=None if options.runner == "local" else partial(start, options, settings),
            begun=note_start,
            after=show_batch,
        )
        seconds = max(time.monotonic() - progress.started, 1e-9)
        first = read_first_error(dead)
    if first:
        hint = "" if options.dead_letters else "; --dead-letters FILE has all"
        print(f"first dead letter: {first}{hint}", file=sys.stderr)
    for manifest in last:
        print_plans(options.plan, manifest)
    rate = (totals.events - before) / seconds
    line = (
        f"events {totals.events}, results {totals.results},"
        f" dead letters {totals.dead_letters},"
        f" unsubscribes of nothing {totals.idle_unsubscribes},"
        f" {rate:.0f} events/s"
    )
    facts = {
        "events": totals.events,
        "results": totals.results,
        "dead_letters": totals.dead_letters,
        "unsubscribes_of_nothing": totals.idle_unsubscribes,
        "events_per_s": round(rate, 1),
        "seconds": round(seconds, 3),
    }
    return CommandSummary(line, facts)


def read_first_error(dead: Path) -> str:
    """Read the line and the error of the first dead letter; empty if there is none."""
    with open(dead, "rb") as file:
        line = file.readline()
    if not line:
        return ""
    letter = msgspec.json.decode(line)
    return f"line {letter['seq'] + 1}: {letter['error']}"


def print_plans(text: str, manifest: Manifest) -> None:
    """Print which plan was made for each kind, and why; `text` is the option `--plan`."""
    names = parse_plans(text)
    for kind, entry in manifest.plans.items():
        name = getattr(names, kind)
        asked = name in PLANS[kind] and name not in UNPLANNED
        label = text if text == name and kind == "boolean" else f"{kind}={name}"
        if isinstance(entry, LeafPlanEntry) and entry.by_hand:
            label = entry.by_hand
        said = entry.why
        if said and entry.made == manifest.batch:
            said += "; the log ended before a batch ran by it (see --batch-rows)"
        elif asked and not said and manifest.counters.events < SAMPLE_EVENTS:
            said = f"not made, the log is too short for a sample of {SAMPLE_EVENTS} events"
        elif asked and not said and text != "auto":
            said = f"not made, there were no {kind} subscriptions or too few objects"
        if isinstance(entry, RowPlanEntry) and entry.broadcast:
            said += f"; {entry.sent:,} objects sent, {entry.broadcast:,} by plain broadcast"
        elif isinstance(entry, RowPlanEntry) and entry.objects:
            each = entry.sent / entry.objects
            said += f"; an object was sent to {each:.2f} of {entry.workers} workers"
        if said and (kind == "boolean" or entry.why or text != "auto"):
            print(f"plan {label}: {said}", file=sys.stderr)


@contextlib.contextmanager
def replay_session(progress: ProgressLine) -> Iterator[Callable[[ReplayOptions, Settings], Any]]:
    """Yield a function that starts Spark; stop what it started at the end of the block."""
    started: list[Any] = []
    warming: list[threading.Thread] = []

    def start(options: ReplayOptions, settings: Settings) -> Any:
        # Imported late: the in-process runner needs no Spark.
        from placewire.spark.java import find_java
        from placewire.spark.session import local_master, make_session, warm_workers

        java = find_java()
        ready_kernels(options.plan, settings)
        print(f"Spark runs on {java.line()}", file=sys.stderr)
        cores = min(most_workers(options), os.cpu_count() or 1)
        session = make_session(local_master(cores), java=java, brief=True, chatter=Path(os.devnull))
        started.append(session)
        mute_spark_log()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.default_int_handler)
        warming.append(warm_workers(session, options.plan, settings))
        progress.started = time.monotonic()  # the rate excludes the start of Spark
        return session

    try:
        yield start
    finally:
        for session in started:
            with contextlib.suppress(Exception):  # after Ctrl-C it may be gone
                session.stop()
        for thread in warming:
            thread.join(WARMING_TIMEOUT_S)  # a thread inside Arrow must not outlive the interpreter


def most_workers(options: ReplayOptions) -> int:
    """Return the largest number of workers; raises Unusable for a plan that cannot be read."""
    if options.workers is not None:
        return read_workers(options.workers).most
    saved = named_plan(parse_plans(options.plan).leaf)
    return (os.cpu_count() or 1) if saved is None else saved.leaves.workers


def check_writable(path: Path) -> None:
    """Raise Unusable for an output file that cannot be written."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise Unusable(f"{path}: cannot be written: not a file in an existing directory")
    try:
        if path.exists():
            with open(path, "ab"):
                pass
        else:
            with tempfile.TemporaryFile(dir=path.absolute().parent):
                pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Unusable(f"{path}: cannot be written: {why}") from None
