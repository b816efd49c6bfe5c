"""The same job on clusters of processes, an executor killed in the middle: the same results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from logs import BUILT_KINDS
from oracle import replay
from placewire.spark.session import find_java
from ports import free_port
from run_config import EVENTS, SINKS, lines_of
from streams import split_log
from waits import until

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
CLUSTER_WAIT_S = 400.0


def executors(session: int) -> list[int]:
    """The executors among the processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in command and os.getsid(int(entry.name)) == session:
                found.append(int(entry.name))
        except (OSError, ProcessLookupError):
            continue
    return found


@contextmanager
def standalone(folder: Path) -> Iterator[tuple[str, int]]:
    """A master and two workers on this machine: its address, and the session of the processes."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "PYSPARK_PYTHON": sys.executable,
    }
    deploy = "org.apache.spark.deploy"
    master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = ["worker.Worker", "--cores", "1", "--memory", "2g", "--webui-port", "0", address]
    script = " & ".join(
        " ".join([str(SPARK_CLASS), f"{deploy}.{one[0]}", *one[1:]])
        for one in (master, worker, worker)
    )
    with (
        open(folder / "spark.log", "wb") as log,
        subprocess.Popen(
            ["bash", "-c", f"{script} & wait"],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as processes,
    ):
        try:
            yield address, processes.pid
        finally:
            os.killpg(processes.pid, signal.SIGKILL)


def cached_files(folder: Path) -> list[set[str]]:
    """The files of the state in the cache of each executor, of those that have one."""
    caches: dict[Path, set[str]] = {}
    for path in folder.rglob("placewire/*/files/b*.plw"):
        caches.setdefault(path.parent, set()).add(path.name)
    return list(caches.values())


@pytest.mark.parametrize("kind", ["local-cluster", "standalone", "caches"])
def test_an_executor_may_die(kind: str, tmp_path: Path) -> None:
    """State on a folder that all see; with caches, each executor maps copies of its own."""
    cut = split_log(tmp_path, 8, objects=3_000, subscriptions=300, queries=12, seed=5)
    with ExitStack() as stack:
        master, session = "local-cluster[2,1,2048]", 0
        if kind == "standalone":
            master, session = stack.enter_context(standalone(tmp_path))
        state = f"file://{tmp_path}/state" if kind == "caches" else "state"
        config = tmp_path / "wire.toml"
        config.write_text(
            f'state = "{state}"\nmaster = "{master}"\nplan = "kdt"\nworkers = 2\nwith_data = true\n'
            f'[spark]\n"spark.executor.memory" = "1g"\n"spark.local.dir" = "{tmp_path}/local"\n'
            + EVENTS
            + SINKS
        )
        command = [sys.executable, "-m", "placewire.cli.main", "run", "--config", str(config)]
        run = stack.enter_context(
            subprocess.Popen(
                [*command, "--once"], stderr=subprocess.PIPE, start_new_session=True, text=True
            )
        )

        def written() -> bool:
            assert run.poll() is None, run.stderr and run.stderr.read()
            return len(list((tmp_path / "lines").glob("*.jsonl"))) >= 2

        until(written, "two files are written", CLUSTER_WAIT_S)
        alive = executors(session or run.pid)
        assert alive
        cached = cached_files(tmp_path / "local")
        assert len(cached) == (2 if kind == "caches" else 0)
        os.kill(alive[0], signal.SIGKILL)
        told = run.communicate(timeout=CLUSTER_WAIT_S)[1]
        assert run.returncode == 0, told
    expected = replay(b"".join(cut), kinds=BUILT_KINDS, with_data=True)
    assert [json.dumps(r) for r in lines_of(tmp_path / "lines")] == [
        json.dumps(r) for r in expected.results
    ]
