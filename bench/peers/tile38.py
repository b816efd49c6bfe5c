"""Tile38 as a peer: boxes of subscriptions in its index, one question an object, words here.

Tile38 has places and no words. Who has both keeps fences in a collection and asks which of them a
point lies in, many questions in one go; the words of the fences that come back are compared by the
client, which is this process. The server is `tile38-server` from the path, from PLACEWIRE_TILE38 or
from `go install`, on a port of its own, with nothing on disk.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bench.clock import own_seconds
from bench.peers import Answer
from bench.workload import CACHE, Workload, analyze
from placewire.model.errors import Unusable

MODULE = "github.com/tidwall/tile38/cmd/tile38-server"
AT_ONCE = 256  # commands that are sent before answers are read
PATIENCE_S = 60.0
ALL = 1_000_000_000  # fences that an answer may have


def run(workload: Workload, folder: Path, *, repeats: int = 3) -> Answer:
    """Register boxes, then ask for every object; the best pass."""
    port = free_port()
    command = [str(find_server()), "-h", "127.0.0.1", "-p", str(port), "-d", str(folder)]
    with (
        open(folder / "tile38.log", "wb") as said,
        subprocess.Popen([*command, "-appendonly", "no"], stdout=said, stderr=said) as process,
    ):
        try:
            with connect(port) as wire:
                return match(workload, wire, process.pid, repeats)
        finally:
            process.kill()


def find_server() -> Path:
    """The server's program, built if Go and the module are there; raises Unusable."""
    named = os.environ.get("PLACEWIRE_TILE38") or shutil.which("tile38-server")
    built = CACHE / "tile38" / "tile38-server"
    if named is not None or built.exists():
        return Path(named or built)
    how = f"put tile38-server on the path, or name it by PLACEWIRE_TILE38 (go install {MODULE})"
    if shutil.which("go") is None:
        raise Unusable(f"no tile38-server; {how}")
    built.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["go", "install", f"{MODULE}@latest"],
        env=os.environ | {"GOBIN": str(built.parent)}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode or not built.exists():
        why = (done.stderr.strip().splitlines() or ["no word"])[-1].strip()[:200]
        raise Unusable(f"no tile38-server, and go does not give it ({why}); {how}")
    return built


def match(workload: Workload, wire: Wire, server: int, repeats: int) -> Answer:
    """All matches through an open connection; processor time is of the server and of this."""
    wishes = workload.subscriptions.to_pylist()
    started = time.perf_counter()
    boxes = (
        ("SET", "fences", number, "BOUNDS", s["south"], s["west"], s["north"], s["east"])
        for number, s in enumerate(wishes)
    )
    for answer in wire.ask(boxes):
        if answer != b"OK":
            raise Unusable(f"Tile38 refuses a fence: {answer!r}")
    prepared = time.perf_counter() - started
    words = [(all if s["operator"] == "AND" else any, s["keywords"]) for s in wishes]
    lon, lat = (workload.objects[name].to_pylist() for name in ("lon", "lat"))
    texts = workload.objects["text"].to_pylist()
    times, pairs = [], []
    for _ in range(repeats):
        pairs = []
        before, started = spent(server), time.perf_counter()
        points = (
            ("INTERSECTS", "fences", "LIMIT", ALL, "IDS", "BOUNDS", y, x, y, x)
            for x, y in zip(lon, lat, strict=True)
        )
        for row, answer in enumerate(wire.ask(points)):
            terms = set(analyze(texts[row]))
            for fence in map(int, answer[1]):
                holds, keywords = words[fence]
                if holds(word in terms for word in keywords):
                    pairs.append((fence, row))
        times.append((time.perf_counter() - started, spent(server) - before))
    wall, processor = (min(column) for column in zip(*times, strict=True))
    return Answer(np.array(pairs, np.int64).reshape(-1, 2), wall, processor, prepared)


def spent(server: int) -> float:
    """Seconds of processors of this process and of the server."""
    return time.process_time() + own_seconds(server)


class Wire:
    """A connection that speaks Redis' protocol, some commands ahead of their answers."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.answers: BinaryIO = connection.makefile("rb", 1 << 20)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.close()
        self.connection.close()

    def ask(self, commands: Iterable[tuple[object, ...]]) -> Iterator[Any]:
        """The answers to commands, in order."""
        sent: list[bytes] = []
        for command in commands:
            sent.append(pack(command))
            if len(sent) == AT_ONCE:
                yield from self._exchange(sent)
                sent = []
        yield from self._exchange(sent)

    def _exchange(self, sent: list[bytes]) -> Iterator[Any]:
        self.connection.sendall(b"".join(sent))
        for _ in sent:
            yield self._read()

    def _read(self) -> Any:
        line = self.answers.readline().rstrip(b"\r\n")
        if not line:
            raise Unusable("Tile38 has closed the connection")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise Unusable(f"Tile38 says {rest.decode(errors='replace')[:200]}")
        if kind == b"$":
            value = self.answers.read(int(rest))
            self.answers.read(2)
            return value
        if kind == b"*":
            return [self._read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest


def pack(command: tuple[object, ...]) -> bytes:
    """A command as the protocol has it: an array of strings."""
    parts = [str(part).encode() for part in command]
    head = b"*%d\r\n" % len(parts)
    return head + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def connect(port: int) -> Wire:
    """A connection to the server, as soon as it listens."""
    ends = time.monotonic() + PATIENCE_S
    while True:
        try:
            return Wire(socket.create_connection(("127.0.0.1", port)))
        except OSError:
            if time.monotonic() > ends:
                raise Unusable(f"Tile38 does not listen on port {port}") from None
            time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
