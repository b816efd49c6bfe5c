"""Start what a pipeline needs, compiled kernels and a Spark session, and stop it by a signal."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import warnings
from contextlib import nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console

from placewire.kernels.cache import cache_directory, watching_compiler
from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.warm import DEFAULT_SETTINGS, warm_kernels

if TYPE_CHECKING:
    from placewire.spark.config import RunConfig

LOADING = "Loading kernels"
COMPILING = "Compiling kernels (only on the first run)"
JAR_SETTINGS = {"spark.jars", "spark.jars.packages"}

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def ready_kernels(plan: str = "shared", settings: Settings = DEFAULT_SETTINGS) -> None:
    """Warm the kernels of a run; show progress on standard error if any has to be compiled."""
    console = Console(stderr=True, highlight=False)
    started = time.monotonic()
    compiled: list[str] = []
    status = console.status(LOADING) if console.is_terminal else None

    def note(name: str) -> None:
        compiled.append(name)
        if status is not None:
            status.update(f"{COMPILING}  {len(compiled)}")
        elif len(compiled) == 1:
            console.print(COMPILING)

    with status or nullcontext(), watching_compiler(note):
        warm_kernels(plan, settings)
    if compiled:
        seconds = time.monotonic() - started
        where = cache_directory()
        console.print(f"Compiled {len(compiled)} kernels in {seconds:.0f} s; cached in {where}")


def start_configured_session(config: RunConfig) -> Any:
    """Start Spark as a configuration file says; raises Unusable."""
    from pyspark.errors import PySparkRuntimeError

    from placewire.spark.session import KAFKA_PACKAGE, find_java, local_master, make_session

    more = dict(config.spark)
    packages = list(config.packages)
    formats = {one.format for one in config.source} | {one.format for one in config.sink}
    if "kafka" in formats and not packages and not more.keys() & JAR_SETTINGS:
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
    mute_spark_log()
    # Spark's accumulator server prints a traceback if the JVM exits first.
    session.sparkContext._accumulatorServer.handle_error = lambda *_: None
    return session


def mute_spark_log() -> None:
    """Disable logging, because Spark's handler calls the JVM in the middle of another call."""
    logging.disable(logging.ERROR)


def stop_session(session: Any) -> None:
    """Stop a session, whose JVM may be gone."""
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        session.stop()


class StopRequested(BaseException):
    """A signal arrived while a run was starting, when no batch has to be finished."""


class Stopper:
    """Stop a run between two batches, or its start at once, on a signal or after a time.

    Sets `asked` on the first of them. Later signals do nothing.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.starting = True
        self._former: dict[int, Any] = {}
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        self._former = self._install()
        return self

    def begin(self, seconds: float | None) -> None:
        """Note that batches run from now on, and stop after so many seconds if given."""
        self.starting = False
        self._install()  # Spark has replaced the handlers
        if seconds is not None:
            self._timer = set_after(self.asked, seconds)

    def _install(self) -> dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, self._handle) for number in SIGNALS}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = not self.asked.is_set()
        self.asked.set()
        if first and self.starting:
            raise StopRequested

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for number, handler in self._former.items():
            signal.signal(number, handler)


def set_on_signals(event: threading.Event) -> None:
    """Set an event when SIGINT or SIGTERM arrives."""
    for number in SIGNALS:
        signal.signal(number, lambda *_: event.set())


def set_after(event: threading.Event, seconds: float) -> threading.Timer:
    """Set an event after so many seconds."""
    timer = threading.Timer(seconds, event.set)
    timer.daemon = True
    timer.start()
    return timer
