"""`placewire run`: run a streaming job from a configuration file."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from placewire.batch.resize import read_workers
from placewire.cli.output import CommandSummary, format_lag
from placewire.cli.startup import (
    Stopper,
    StopRequested,
    ready_kernels,
    start_configured_session,
    stop_session,
)
from placewire.model.errors import Unusable
from placewire.plans.names import parse_plans
from placewire.plans.rebalance.rebalancer import read_rebalance
from placewire.spark.config import RunConfig, read_config, read_run_settings
from placewire.storage.runtime_files import Lag

if TYPE_CHECKING:
    from placewire.spark.runner import Run

LINE_EVERY_S = 5.0  # about batches


class RunOptions(NamedTuple):
    """The options of the command."""

    config: Path
    once: bool
    seconds: float | None
    log: str
    plan: str | None = None
    workers: str | None = None
    rebalance: str | None = None


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
            print(f"failed: {facts['error']}; again in {facts['again_in_s']:g} s", file=sys.stderr)
        elif what == "starting":
            print("starting Spark, which takes ten seconds or more", file=sys.stderr)
        elif what == "started":
            after = f" after batch {facts['batch']}" if facts["batch"] >= 0 else ""
            print(f"started{after}; Ctrl-C or SIGTERM ends it", file=sys.stderr)
        if what == "started" and not self.latest:
            self.before = facts["events"]
        if what == "lag":
            self.lag = msgspec.convert(facts, Lag)
        if what == "batch":
            self._note(facts)

    def _note(self, facts: dict[str, Any]) -> None:
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
    line = f"ended after {log.line()}" if run is not None else "ended before it had started"
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
