"""`placewire replay` and `placewire run`: run an event log or a streaming job."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from placewire.api import replay
from placewire.batch.resize import read_workers
from placewire.cli.commands import ReplayOptions, RunOptions
from placewire.cli.output import CommandSummary, ProgressLine, format_lag
from placewire.cli.startup import (
    Stopper,
    StopRequested,
    mute_spark_log,
    ready_kernels,
    start_configured_session,
    stop_session,
)
from placewire.ingest.log import check_lines
from placewire.model.errors import Unusable
from placewire.model.settings import Settings, read_settings
from placewire.plans.names import PLANS, UNPLANNED, named_plan, parse_plans
from placewire.plans.rebalance.rebalancer import read_rebalance
from placewire.plans.sample.sampler import SAMPLE_EVENTS
from placewire.spark.config import RunConfig, read_config, read_run_settings
from placewire.storage.manifest import LeafPlanEntry, Manifest, RowPlanEntry
from placewire.storage.runtime_files import Lag

if TYPE_CHECKING:
    from placewire.spark.runner import Run

WARMING_TIMEOUT_S = 20.0


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
        hint = "" if options.dead_letters else "; --dead-letters FILE writes all"
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
        from placewire.spark.session import find_java, local_master, make_session, warm_workers

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


LINE_EVERY_S = 5.0  # about batches


class RunLog:
    """Report the events of a run on standard error, as lines for people or as JSON."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.started = time.monotonic()
        self.last_s = 0.0
        self.before = 0  # events committed by earlier runs
        self.latest: dict[str, Any] = {}
        self.lag: Lag | None = None

    def __call__(self, what: str, facts: dict[str, Any]) -> None:
        if self.form == "json":
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            print(msgspec.json.encode({"at": at, "what": what, **facts}).decode(), file=sys.stderr)
        elif what == "failed":
            print(
                f"failed: {facts['error']}; retrying in {facts['again_in_s']:g} s", file=sys.stderr
            )
        elif what == "starting":
            print("starting Spark, which takes ten seconds or more", file=sys.stderr)
        elif what == "started":
            after = f" after batch {facts['batch']}" if facts["batch"] >= 0 else ""
            print(f"started{after}; Ctrl-C or SIGTERM stops it", file=sys.stderr)
        if what == "started" and not self.latest:
            self.before = facts["events"]
        if what == "lag":
            self.lag = msgspec.convert(facts, Lag)
        if what == "batch":
            self.latest = facts
            now = time.monotonic()
            if self.form == "plain" and now - self.last_s >= LINE_EVERY_S:
                self.last_s = now
                print(self.line(), file=sys.stderr)

    def facts(self) -> dict[str, Any]:
        """Return the progress of the run as JSON fields."""
        nothing = {"batch": -1, "events": self.before, "results": 0, "dead_letters": 0}
        progress = {name: self.latest.get(name, nothing[name]) for name in nothing}
        progress["events_per_s"] = round(self.rate(), 1)
        return progress | ({"lag": msgspec.to_builtins(self.lag)} if self.lag is not None else {})

    def rate(self) -> float:
        """Return events per second since the run started."""
        done = self.latest.get("events", self.before) - self.before
        return float(done / max(time.monotonic() - self.started, 1e-9))

    def line(self) -> str:
        """Return the progress of the run as one line."""
        facts = self.latest
        if not facts:
            return "no new events"
        behind = f"; {format_lag(self.lag)}" if self.lag is not None else ""
        return (
            f"batch {facts['batch']}: events {facts['events']}, results {facts['results']},"
            f" dead letters {facts['dead_letters']}, {self.rate():.0f} events/s{behind}"
        )


def run_stream(options: RunOptions) -> CommandSummary:
    """Run a configuration and summarize the run; raises Unusable."""
    if options.log not in ("plain", "json"):
        raise Unusable(f"log: must be plain or json, got {options.log!r}")
    config = read_config(options.config)
    given = {name: getattr(options, name) for name in ("plan", "workers", "rebalance")}
    given = {name: value for name, value in given.items() if value is not None}
    config = msgspec.structs.replace(config, **given)
    read_rebalance(config.rebalance)
    parse_plans(config.plan)
    read_run_settings(config)
    if config.workers is not None:
        read_workers(config.workers)
    log = RunLog(options.log)
    with Stopper() as stopper:
        run = start_run(config, log, stopper)
        if run is not None:
            stopper.begin(options.seconds)
            try:
                log.started = time.monotonic()
                run.go(options.once)
            finally:
                stop_session(run.spark)
    log("ended", log.facts())
    line = f"ended after {log.line()}" if run is not None else "stopped before it started"
    return CommandSummary(line, log.facts())


def start_run(config: RunConfig, log: RunLog, stopper: Stopper) -> Run | None:
    """Start Spark and return the run; None if a signal arrived meanwhile."""
    session = None
    try:
        log("starting", {})
        ready_kernels(config.plan)
        session = start_configured_session(config)
        from placewire.spark.runner import Run

        return Run(session, config, log, stopper.asked)
    except (StopRequested, KeyboardInterrupt, Exception):
        if session is not None:
            stop_session(session)
        if not stopper.asked.is_set():
            raise
        return None  # the failure may come from a process that got the signal too
