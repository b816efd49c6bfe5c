"""`placewire run`: sources to sinks, until somebody says stop."""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from placewire.cli.kernels import ready_kernels
from placewire.cli.lag import lag_line
from placewire.cli.outcome import Outcome
from placewire.cli.stopping import StopAsked, Stopper
from placewire.model.errors import Unusable
from placewire.plans.names import parse_plans
from placewire.plans.rebalance.elastic import read_workers
from placewire.plans.rebalance.rebalancer import read_rebalance
from placewire.spark.config import RunConfig, read_config, settings_of_config
from placewire.storage.notes import Lag

if TYPE_CHECKING:
    from placewire.spark.runner import Run

GIVEN_JARS = {"spark.jars", "spark.jars.packages"}  # settings of Spark's
SAYS_S = 5.0  # between two lines about batches


class RunOptions(NamedTuple):
    """What the user typed."""

    config: Path
    once: bool
    seconds: float | None
    log: str
    plan: str | None = None
    workers: str | None = None
    rebalance: str | None = None


class Teller:
    """Tells what happens on standard error, in lines for people or as JSON."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.started = time.monotonic()
        self.last_s = 0.0
        self.before = 0  # events that were done when it started
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
        if self.form == "plain" and now - self.last_s >= SAYS_S:
            self.last_s = now
            print(self.line(), file=sys.stderr)

    def facts(self) -> dict[str, Any]:
        """How far it has come, for programs."""
        nothing = {"batch": -1, "events": self.before, "results": 0, "dead_letters": 0}
        told = {name: self.latest.get(name, nothing[name]) for name in nothing}
        told["events_per_s"] = round(self.rate(), 1)
        return told | ({"lag": msgspec.to_builtins(self.lag)} if self.lag is not None else {})

    def rate(self) -> float:
        done = self.latest.get("events", self.before) - self.before
        return float(done / max(time.monotonic() - self.started, 1e-9))

    def line(self) -> str:
        """How far it has come."""
        facts = self.latest
        if not facts:
            return "no new events"
        behind = f"; {lag_line(self.lag)}" if self.lag is not None else ""
        return (
            f"batch {facts['batch']}: events {facts['events']}, results {facts['results']},"
            f" dead letters {facts['dead_letters']}, {self.rate():.0f} events/s{behind}"
        )


def run_config(options: RunOptions) -> Outcome:
    """Run a configuration and say what came of it; raises Unusable."""
    if options.log not in ("plain", "json"):
        raise Unusable(f"log: must be plain or json, got {options.log!r}")
    config = read_config(options.config)
    given = {name: getattr(options, name) for name in ("plan", "workers", "rebalance")}
    given = {name: value for name, value in given.items() if value is not None}
    config = msgspec.structs.replace(config, **given)
    read_rebalance(config.rebalance)
    parse_plans(config.plan)
    settings_of_config(config)
    if config.workers is not None:
        read_workers(config.workers)
    teller = Teller(options.log)
    with Stopper() as stopper:
        run = start_run(config, teller, stopper)
        if run is not None:
            stopper.begin(options.seconds)
            try:
                teller.started = time.monotonic()
                run.go(options.once)
            finally:
                stop_session(run.spark)
    teller("ended", teller.facts())
    line = f"ended after {teller.line()}" if run is not None else "ended before it had started"
    return Outcome(line, teller.facts())


def start_run(config: RunConfig, teller: Teller, stopper: Stopper) -> Run | None:
    """A run with its session; None if a signal came meanwhile."""
    session = None
    try:
        teller("starting", {})
        ready_kernels(config.plan)
        session = open_session(config)
        from placewire.spark.runner import Run

        return Run(session, config, teller, stopper.asked)
    except (StopAsked, KeyboardInterrupt, Exception):
        if session is not None:
            stop_session(session)
        if not stopper.asked.is_set():
            raise
        return None  # whatever failed: its processes may have got the signal too


def stop_session(session: Any) -> None:
    """Let go of a session, whose JVM may be gone."""
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        session.stop()


def open_session(config: RunConfig) -> Any:
    """A session as the configuration wants it."""
    from pyspark.errors import PySparkRuntimeError

    from placewire.spark.java import find_java
    from placewire.spark.packages import KAFKA_PACKAGE
    from placewire.spark.session import local_master, make_session

    more = dict(config.spark)
    packages = list(config.packages)
    if "kafka" in config.formats and not packages and not more.keys() & GIVEN_JARS:
        packages.append(KAFKA_PACKAGE)
    if packages:
        more["spark.jars.packages"] = ",".join(packages)
    try:
        session = make_session(
            config.master or local_master(os.cpu_count() or 1),
            java=find_java(),
            chatter=Path(os.devnull),
            more=more,
        )
    except PySparkRuntimeError as error:
        if not packages:
            raise
        named = ", ".join(packages)
        raise Unusable(f"Spark does not start: can packages be fetched, {named}? {error}") from None
    # Spark's own handler talks to the JVM in the middle of another call to it.
    logging.disable(logging.ERROR)
    # Its server of counts shows a traceback when the JVM goes first.
    session.sparkContext._accumulatorServer.handle_error = lambda *_: None
    return session
