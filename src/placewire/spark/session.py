"""Start a Spark session for the command line; all other code takes a session as an argument."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
from pyspark import java_gateway
from pyspark.sql import SparkSession

from placewire.model.settings import Settings
from placewire.spark.java import Java, find_java
from placewire.warm import DEFAULT_SETTINGS, warm_kernels

# Without native Hadoop, the default manager forks a process for every checkpoint file.
FILE_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


# The pipeline does little in the JVM: in a run of minutes its optimizing compiler never pays off.
SHORT_RUN_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


MAX_TASK_FAILURES = (
    4  # of a task whose process died, as on a cluster; alone Spark would give up at once
)


def local_master(cores: int) -> str:
    """Return the master URL of Spark on this machine."""
    return f"local[{cores},{MAX_TASK_FAILURES}]"


def make_session(
    master: str = "local[*]",
    *,
    java: Java | None = None,
    brief: bool = False,
    chatter: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a quiet session whose workers use this Python, with `more` Spark settings.

    `brief` turns off JVM optimizations that pay off only in long runs. `chatter` is a file for the
    standard error of the JVM.
    """
    java = java or find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = redirect_stderr(chatter) if chatter is not None else contextlib.nullcontext()
    with quiet, kill_jvm_on_failure():
        session = start_session(master, SHORT_RUN_OPTIONS if brief else "", more or {})
    session.sparkContext.setLogLevel("OFF")
    return session


def start_session(master: str, jvm_options: str, more: Mapping[str, str]) -> SparkSession:
    """Build the session with its settings."""
    builder = (
        SparkSession.builder.master(master)
        .appName("placewire")
        .config("spark.driver.extraJavaOptions", jvm_options)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.sql.streaming.metricsEnabled", "false")
        .config("spark.log.level", "OFF")
    )
    for name, value in more.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def count_machines(session: SparkSession) -> int:
    """Count the machines on which executors of a session run."""
    context = session.sparkContext
    places = context._jsc.sc().getExecutorMemoryStatus().keys().mkString(" ")
    return count_hosts(places.split(), context.getConf().get("spark.driver.host", ""))


def on_cluster(session: SparkSession) -> bool:
    """Whether tasks run outside the driver's process, possibly on other machines."""
    master = session.sparkContext.master
    return not master.startswith("local") or master.startswith("local-cluster")


def jvm_ended(session: SparkSession, wait_s: float = 0.0) -> bool:
    """Whether the JVM of this process has exited, or exits within `wait_s`."""
    process = getattr(session.sparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def count_hosts(places: list[str], driver: str) -> int:
    """Count the hosts of executors among places, host:port each, including the driver's."""
    hosts = [place.rsplit(":", 1)[0] for place in places]
    if driver in hosts:
        hosts.remove(driver)  # once: executors may run on the same host
    return len(set(hosts)) or 1


@contextlib.contextmanager
def kill_jvm_on_failure() -> Iterator[None]:
    """Kill the JVM that the block started if the block fails or is interrupted.

    PySpark loses track of a JVM if it is interrupted while starting it.
    """
    started: list[subprocess.Popen[bytes]] = []

    def launch(*arguments: Any, **more: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*arguments, **more))
        return started[-1]

    usual = java_gateway.Popen
    java_gateway.Popen = launch
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        java_gateway.Popen = usual


@contextlib.contextmanager
def redirect_stderr(path: Path) -> Iterator[None]:
    """Redirect standard error, also of processes started meanwhile, to a file."""
    sys.stderr.flush()
    usual = os.dup(2)
    with open(path, "wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(usual, 2)
        os.close(usual)


def warm_workers(session: SparkSession, plan: str, run: Settings = DEFAULT_SETTINGS) -> Thread:
    """Start Python workers on every core and load kernels, in the background.

    It only saves time: errors are ignored here and reported by the first batch.
    """

    def warm() -> None:
        cores = session.sparkContext.defaultParallelism
        with contextlib.suppress(Exception):
            rows = session.range(0, cores, 1, cores)
            rows.mapInArrow(partial(load_kernels, plan, run), "id long").toArrow()

    thread = Thread(target=warm, name="placewire-warming", daemon=True)
    thread.start()
    return thread


def load_kernels(
    plan: str, run: Settings, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Load kernels in this worker; rows pass through."""
    warm_kernels(plan, run)
    yield from batches
