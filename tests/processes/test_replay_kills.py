"""Runs that are really killed, and resumed: the same bytes as if nothing had happened."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crashes import STARTER, Killed
from logs import BUILT_KINDS
from oracle import replay
from placewire.demo import CityLife, write_log
from waits import until


class Files(NamedTuple):
    """What a run leaves."""

    results: bytes
    dead: bytes


LIVE = Killed()


def words(
    log: Path, folder: Path, *more: object, rows: int = 40, runner: str = "local"
) -> list[str]:
    """The command line of a replay that keeps its state in the folder."""
    return [
        str(word)
        for word in (
            "replay", log, "--results", folder / "results.jsonl",
            "--dead-letters", folder / "dead.jsonl", "--state", folder / "state",
            "--settings", log.parent / "settings.toml",
            "--runner", runner, "--batch-rows", rows, "--workers", 2, *more,
        )
    ]  # fmt: skip


class Ended(NamedTuple):
    """How a process ended, and what it said."""

    code: int
    out: str
    err: str


class Starter:
    """Starts commands: local ones by the process that has everything loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None

    def run(
        self, log: Path, folder: Path, *more: object, killed: Killed = LIVE, **named: Any
    ) -> Ended:
        asked = words(log, folder, *more, **named)
        out, err = self.folder / "out", self.folder / "err"
        if named.get("runner") == "spark":
            # Into files, and not waiting for them to be closed: Java may outlive who started it.
            with open(out, "wb") as to_out, open(err, "wb") as to_err:
                start = [sys.executable, "-c", STARTER, json.dumps(killed), *asked]
                code = subprocess.run(start, stdout=to_out, stderr=to_err, check=False).returncode
            return Ended(code, out.read_text(), err.read_text())
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", STARTER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([killed, asked, str(out), str(err)]) + "\n")
        self.process.stdin.flush()
        code = json.loads(self.process.stdout.readline())
        return Ended(code, out.read_text(), err.read_text())

    def begin(
        self, log: Path, folder: Path, *more: object, killed: Killed = LIVE, **named: Any
    ) -> subprocess.Popen[str]:
        """A process of its own, that can be stopped and killed from outside."""
        asked = words(log, folder, *more, **named)
        return subprocess.Popen(
            [sys.executable, "-c", STARTER, json.dumps(killed), *asked],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, log: Path, folder: Path, *more: object, **named: Any) -> Files:
        """Run to the end, and give what that leaves."""
        ended = self.run(log, folder, *more, **named)
        assert ended.code == 0, ended.err
        assert "Traceback" not in ended.err
        return read(folder)

    def kill(self, log: Path, folder: Path, *more: object, **named: Any) -> None:
        """Run until it kills itself."""
        ended = self.run(log, folder, *more, **named)
        assert ended.code == -signal.SIGKILL, f"{ended} was not killed"

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(20)


def read(folder: Path) -> Files:
    return Files((folder / "results.jsonl").read_bytes(), (folder / "dead.jsonl").read_bytes())


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    made = Starter(tmp_path_factory.mktemp("starter"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 460 events in 12 batches of 40: subscriptions that come and go, objects, bad lines."""
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    write_log(CityLife(objects=260, subscriptions=120, churn=0.8, bad=25, seed=11), str(path))
    # A leap that the clock refuses, in the middle: its dead letter comes from another file.
    lines = path.read_bytes().splitlines(keepends=True)
    leap = b'{"type":"unsubscribe","id":"leap","ts":"2099-01-01T00:00:00Z"}\n'
    everywhere = (
        b'{"type":"subscribe","id":"all","ts":"2026-03-01T12:00:00Z","kind":"boolean",'
        b'"region":{"box":[-180,-90,180,90]}}\n'
    )
    relevant = b"".join(
        json.dumps(
            {"type": "subscribe", "id": f"rel{k}", "ts": "2026-03-01T12:00:00Z"}
            | {"kind": "relevant", "lon": 0, "lat": 40, "keywords": ["the", "at", "in"]}
            | {"k": k, "alpha": 0.5}
        ).encode()
        + b"\n"
        for k in (1, 3, 9)
    )
    path.write_bytes(b"".join([everywhere, relevant, *lines[:150], leap, *lines[150:]]))
    # A window that slides within a batch: results of `relevant` come and go.
    (path.parent / "settings.toml").write_text("window = { count = 30 }\n")
    return path


@pytest.fixture(scope="module")
def undisturbed(starter: Starter, log: Path, tmp_path_factory: pytest.TempPathFactory) -> Files:
    files = starter.finish(log, tmp_path_factory.mktemp("undisturbed"))
    settings = {"window": {"count": 30}}
    expected = replay(log.read_bytes(), kinds=BUILT_KINDS, settings=settings)
    assert files.results.count(b"\n") == len(expected.results) > 200
    assert files.dead.count(b"\n") == len(expected.dead) >= 26
    return files


COORDINATOR = "placewire.batch.coordinator"
POINTS = [
    Killed(COORDINATOR, "write_manifest", "before", 1),
    Killed(COORDINATOR, "write_manifest", "after", 1),
    Killed(COORDINATOR, "write_manifest", "before", 6),
    Killed(COORDINATOR, "write_manifest", "after", 6),
    Killed(COORDINATOR, "write_manifest", "after", 12),
    Killed(COORDINATOR, "write_arrays", "after", 1),
    Killed("placewire.sinks.files", "os.fsync", "after", 9),
    Killed(COORDINATOR, "collect_garbage", "before", 2),
    Killed(COORDINATOR, "collect_garbage", "after", 2),
    Killed("placewire.sinks.files", "FileSink.deliver", "before", 5),
    Killed("placewire.sinks.files", "FileSink.deliver", "after", 5),
    Killed("placewire.sinks.files", "result_lines", "half", 3),
    Killed("placewire.sinks.files", "result_lines", "half", 7),
    Killed("placewire.sinks.files", "dead_letter_lines", "before", 4),
    Killed("placewire.sinks.files", "dead_letter_lines", "after", 4),
    Killed("placewire.sinks.files", "write_file", "before", 5),
    Killed("placewire.sinks.files", "write_file", "after", 5),
    Killed("placewire.sinks.files", "FileSink.copy_out", "before", 1),
    Killed("placewire.batch.dispatch", "write_arrays", "before", 9),
    Killed("placewire.batch.dispatch", "write_arrays", "after", 9),
    Killed("placewire.segments.live", "write_segment", "before", 4),
    Killed("placewire.segments.live", "write_segment", "after", 4),
    Killed("placewire.segments.live", "write_segment", "after", 1),
    Killed("placewire.storage.layout", "write_file", "before", 1),
    Killed("placewire.storage.layout", "os.replace", "before", 1),
    Killed("placewire.storage.layout", "os.replace", "before", 8),
    Killed("placewire.storage.layout", "os.replace", "after", 8),
    Killed("placewire.storage.arrays", "os.fdatasync", "before", 10),
    Killed("placewire.segments.live", "write_arrays", "before", 5),
    Killed("placewire.segments.live", "write_arrays", "after", 9),
]


OFTEN = [point for point in POINTS if point.name in ("write_manifest", "os.replace")]


def name_of(killed: Killed) -> str:
    return f"{killed.when} {killed.name} {killed.count}"


@pytest.mark.parametrize("killed", POINTS, ids=name_of)
def test_killed_and_resumed(
    starter: Starter, log: Path, undisturbed: Files, tmp_path: Path, killed: Killed
) -> None:
    starter.kill(log, tmp_path, killed=killed)
    assert starter.finish(log, tmp_path) == undisturbed


def test_killed_again_and_again(
    starter: Starter, log: Path, undisturbed: Files, tmp_path: Path
) -> None:
    """Each life gets a little further, and each with another plan, batch size and width."""
    choose = random.Random(3)
    for _ in range(12):
        killed = choose.choice(OFTEN)._replace(count=choose.randint(1, 4))
        plan, workers = choose.choice(["shared", "grid", "scan"]), choose.choice([1, 2, 7])
        more = ("--plan", plan, "--workers", workers)
        starter.kill(log, tmp_path, *more, killed=killed, rows=choose.choice([1, 9, 20]))
    assert starter.finish(log, tmp_path) == undisturbed


def test_killed_at_every_step_of_a_short_run(starter: Starter, log: Path, tmp_path: Path) -> None:
    """Wherever a file is made, renamed or put on disk, one after another until it gets through."""
    short = tmp_path / "short.jsonl"
    (tmp_path / "settings.toml").write_text("window = { count = 10 }\n")
    lines = log.read_bytes().splitlines(keepends=True)
    short.write_bytes(b"".join([*lines[:60], *lines[140:160]]))
    expected = starter.finish(short, tmp_path / make(tmp_path, "whole"), rows=30)
    for name, stride in (("os.replace", 1), ("os.fsync", 3), ("os.fdatasync", 4)):
        for count in range(1, 60, stride):
            folder = tmp_path / make(tmp_path, f"{name}-{count}")
            killed = Killed("placewire.storage.layout", name, "before", count)
            ended = starter.run(short, folder, killed=killed, rows=30)
            if ended.code == 0:
                assert count > 3
                break
            assert ended.code == -signal.SIGKILL, ended
            assert starter.finish(short, folder, rows=30) == expected, killed
        else:
            pytest.fail(f"{name} is called without end")


def make(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


@pytest.mark.parametrize(
    ("more", "rows"),
    [
        ((), 1000),
        ((), 7),
        (("--workers", 7), 40),
        (("--workers", 1), 40),
        (("--plan", "grid"), 40),
        (("--plan", "scan"), 55),
        (("--plan", "grid", "--workers", 5), 17),
    ],
)
def test_resumed_in_another_way(
    starter: Starter,
    log: Path,
    undisturbed: Files,
    tmp_path: Path,
    more: tuple[object, ...],
    rows: int,
) -> None:
    starter.kill(log, tmp_path, killed=Killed(COORDINATOR, "write_manifest", "after", 4))
    killed = Killed(COORDINATOR, "write_manifest", "after", 1)
    starter.kill(log, tmp_path, *more, rows=rows, killed=killed)
    assert starter.finish(log, tmp_path) == undisturbed


def test_finished_in_one_way_is_finished_in_all(
    starter: Starter, log: Path, undisturbed: Files, tmp_path: Path
) -> None:
    for more in ((), ("--plan", "grid"), ("--workers", 7), ("--plan", "scan")):
        assert starter.finish(log, tmp_path, *more) == undisturbed


def wait_for_manifests(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    def written() -> bool:
        assert process.poll() is None, process.communicate()
        return len(list((folder / "state").glob("manifests/[0-9]*.json"))) >= count

    until(written, f"{count} manifests are written")


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_from_outside(
    starter: Starter, log: Path, undisturbed: Files, tmp_path: Path, seed: int
) -> None:
    choose = random.Random(seed)
    with starter.begin(log, tmp_path, rows=2) as process:
        wait_for_manifests(tmp_path, choose.randint(1, 3), process)
        time.sleep(choose.uniform(0, 0.3))  # any moment will do
        process.kill()
    assert starter.finish(log, tmp_path) == undisturbed


def test_a_second_process_is_refused(
    starter: Starter, log: Path, undisturbed: Files, tmp_path: Path
) -> None:
    with starter.begin(log, tmp_path, rows=10) as first:
        wait_for_manifests(tmp_path, 1, first)
        first.send_signal(signal.SIGSTOP)  # it holds the lock as long as we like
        try:
            second = starter.run(log, tmp_path)
        finally:
            first.send_signal(signal.SIGCONT)
        assert (second.code, second.out) == (2, "")
        assert second.err.count("\n") == 1
        assert "in use by another process" in second.err
        first.communicate()
    assert first.returncode == 0
    assert read(tmp_path) == undisturbed


def test_interrupted_by_the_user(
    starter: Starter, log: Path, undisturbed: Files, tmp_path: Path
) -> None:
    with starter.begin(log, tmp_path, rows=2) as process:
        wait_for_manifests(tmp_path, 2, process)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130
    assert told.splitlines()[-1] == "placewire: interrupted"
    assert "Traceback" not in told
    assert starter.finish(log, tmp_path) == undisturbed


# --- on Spark ---


def test_killed_and_resumed_on_spark(
    starter: Starter, log: Path, undisturbed: Files, tmp_path: Path
) -> None:
    """Spark planned a second batch that was not committed; its Java may still be dying."""
    killed = Killed(COORDINATOR, "write_manifest", "before", 2)
    starter.kill(log, tmp_path, killed=killed, rows=200, runner="spark")
    assert len(list((tmp_path / "state" / "manifests").iterdir())) == 1
    assert starter.finish(log, tmp_path, "--plan", "grid", rows=90, runner="spark") == undisturbed


def test_begun_on_spark_and_finished_here(
    starter: Starter, log: Path, undisturbed: Files, tmp_path: Path
) -> None:
    killed = Killed("placewire.sinks.files", "result_lines", "half", 2)
    starter.kill(log, tmp_path, killed=killed, rows=150, runner="spark")
    assert len(list((tmp_path / "state" / "manifests").iterdir())) == 2
    assert starter.finish(log, tmp_path, rows=50) == undisturbed
