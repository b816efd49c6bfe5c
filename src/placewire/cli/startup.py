"""Start what a pipeline needs: compiled kernels and a Spark session."""

from __future__ import annotations

import logging
import os
import time
import warnings
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from rich.console import Console

from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.warm import DEFAULT_SETTINGS, warm_kernels

if TYPE_CHECKING:
    from placewire.spark.config import RunConfig

LOADING = "loading kernels"
COMPILING = "loading kernels (the first run compiles them, which takes minutes)"
LOADED_WITHIN_S = 3.0  # kernels that take longer are being compiled
JAR_SETTINGS = {"spark.jars", "spark.jars.packages"}


def ready_kernels(plan: str = "shared", settings: Settings = DEFAULT_SETTINGS) -> None:
    """Warm the kernels of a run; say so on standard error if they have to be compiled."""
    console = Console(stderr=True)
    started = time.monotonic()
    if console.is_terminal:
        with console.status(LOADING) as status:
            warm_with_notice(plan, settings, Timer(LOADED_WITHIN_S, status.update, [COMPILING]))
    else:
        warm_with_notice(plan, settings, Timer(LOADED_WITHIN_S, console.print, [COMPILING]))
    seconds = time.monotonic() - started
    if seconds > LOADED_WITHIN_S:
        console.print(f"{COMPILING}: {seconds:.0f} s", highlight=False)


def warm_with_notice(plan: str, settings: Settings, notice: Timer) -> None:
    """Warm the kernels; cancel the notice if they are ready before it is due."""
    notice.daemon = True
    notice.start()
    try:
        warm_kernels(plan, settings)
    finally:
        notice.cancel()


def start_configured_session(config: RunConfig) -> Any:
    """Start Spark as a configuration file says; raises Unusable."""
    from pyspark.errors import PySparkRuntimeError

    from placewire.spark.java import find_java
    from placewire.spark.session import KAFKA_PACKAGE, local_master, make_session

    more = dict(config.spark)
    packages = list(config.packages)
    if "kafka" in config.formats and not packages and not more.keys() & JAR_SETTINGS:
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
