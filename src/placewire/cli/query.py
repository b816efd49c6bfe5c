"""`placewire query`: ask a state directory, with no Spark session, whether a stream runs or not."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from placewire.engine.snapshot import Snapshot
from placewire.model.errors import InvalidEvent, Unusable


class QueryOptions(NamedTuple):
    """What was asked on the command line."""

    query: str
    state: Path
    with_data: bool
    timing: bool


def run_query(options: QueryOptions) -> int:
    """Answer one query, or one after another from standard input; gives the exit code.

    A bad query among several is told on standard error, and the others are answered.
    """
    code = 0
    with Snapshot(options.state) as snapshot:
        if snapshot.manifest is None:
            print("placewire: nothing is committed yet", file=sys.stderr)
        if options.query != "-":
            try:
                answer(snapshot, options.query, options)
            except InvalidEvent as error:
                raise Unusable(str(error)) from None
            return 0
        with standard_input() as lines:
            for number, line in enumerate(lines, 1):
                snapshot.refresh()
                try:
                    answer(snapshot, line, options)
                except InvalidEvent as error:
                    print(f"placewire: line {number}: {error}", file=sys.stderr, flush=True)
                    code = 1
    return code


@contextmanager
def standard_input() -> Iterator[Iterable[bytes]]:
    """Its lines, as they come."""
    if sys.stdin is None:
        raise Unusable("standard input is closed")
    source: BinaryIO = sys.stdin.buffer
    yield iter(source.readline, b"")


def answer(snapshot: Snapshot, query: str | bytes, options: QueryOptions) -> None:
    """Print the answer to one query."""
    first_ms, line = timed_answer(snapshot, query, options)
    if sys.stdout is None:
        raise Unusable("standard output is closed")
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
    if options.timing:
        objects = sum(section.retained.total for section in snapshot.sections)
        took_ms, _ = timed_answer(snapshot, query, options)
        print(
            f"answered in {took_ms:.2f} ms from {objects:,} objects in"
            f" {len(snapshot.sections)} files ({first_ms:.0f} ms the first time)",
            file=sys.stderr,
        )


def timed_answer(
    snapshot: Snapshot, query: str | bytes, options: QueryOptions
) -> tuple[float, bytes]:
    """The milliseconds that an answer took, and its line."""
    started = time.perf_counter()
    line = snapshot.answer_line(query, options.with_data)
    return 1_000 * (time.perf_counter() - started), line
