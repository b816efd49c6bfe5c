"""A Spark session as Placewire likes it; everything else takes a session as an argument."""

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
from placewire.warm import USUAL, warm_kernels

# Without native Hadoop every checkpoint file of the default manager forks a process.
FILE_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


# The pipeline asks little of the JVM: its second compiler never pays back in a run of minutes.
BRIEF_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


TRIES = 4  # of a task whose process died, as on a cluster; alone Spark would give up at once


def local_master(cores: int) -> str:
    """Spark on this machine."""
    return f"local[{cores},{TRIES}]"


def make_session(
    master: str = "local[*]",
    *,
    java: Java | None = None,
    brief: bool = False,
    chatter: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> SparkSession:
    """A quiet session whose Python workers are this Python, with `more` settings of Spark's.

    `brief` spares the JVM work that pays only in long runs of SQL. What the JVM says on standard
    error goes to the file `chatter`, if there is one.
    """
    java = java or find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = errors_to(chatter) if chatter is not None else contextlib.nullcontext()
    with quiet, no_stray_jvm():
        session = start_session(master, BRIEF_JVM if brief else "", more or {})
    session.sparkContext.setLogLevel("OFF")
    return session


def start_session(master: str, jvm_options: str, more: Mapping[str, str]) -> SparkSession:
    """The session with its settings."""
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
    """On how many machines a session's executors run, of those that are there by now."""
    context = session.sparkContext
    places = context._jsc.sc().getExecutorMemoryStatus().keys().mkString(" ")
    return count_hosts(places.split(), context.getConf().get("spark.driver.host", ""))


def on_cluster(session: SparkSession) -> bool:
    """Whether tasks run in other processes than the driver's own, maybe on other machines."""
    master = session.sparkContext.master
    return not master.startswith("local") or master.startswith("local-cluster")


def jvm_ended(session: SparkSession, wait_s: float = 0.0) -> bool:
    """Whether the JVM that this process started has ended, or does so within some seconds."""
    process = getattr(session.sparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def count_hosts(places: list[str], driver: str) -> int:
    """Different hosts among places, each host:port, one of which is the driver; 1 if it is all."""
    hosts = [place.rsplit(":", 1)[0] for place in places]
    if driver in hosts:
        hosts.remove(driver)  # once: executors on its host are there beside it
    return len(set(hosts)) or 1


@contextlib.contextmanager
def no_stray_jvm() -> Iterator[None]:
    """End the JVM that the block started if it fails, by Ctrl-C too.

    PySpark forgets a JVM in whose start it is interrupted, and that one stays for ever.
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
def errors_to(path: Path) -> Iterator[None]:
    """Let standard error, and that of every process started meanwhile, go to a file."""
    sys.stderr.flush()
    usual = os.dup(2)
    with open(path, "wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(usual, 2)
        os.close(usual)


def warm_workers(session: SparkSession, plan: str, run: Settings = USUAL) -> Thread:
    """Let every core start a Python worker and load the kernels of a run, beside what follows.

    It only saves time: whatever fails here would fail, and be told, in the first batch.
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
    """Load kernels in the worker that runs this; rows pass through."""
    warm_kernels(plan, run)
    yield from batches
