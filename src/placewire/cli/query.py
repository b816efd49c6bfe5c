"""`placewire query`: answer snapshot queries from a state directory or a server."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO, NamedTuple

from placewire.cli.connection import CommandTarget, open_client
from placewire.model.errors import InvalidEvent, Unusable
from placewire.queries.answer import encode_line
from placewire.queries.snapshot import Snapshot, decode_object
from placewire.serve.client import Client, Declined


class QueryOptions(NamedTuple):
    """The options of the command."""

    query: str
    target: CommandTarget
    with_data: bool
    timing: bool


def run_query(options: QueryOptions) -> int:
    """Answer one query, or each line of standard input; return the exit code.

    An invalid line is reported on standard error and does not stop the others.
    """
    with open_answerer(options) as ask:
        if options.query != "-":
            try:
                ask(options.query)
            except InvalidEvent as error:
                raise Unusable(str(error)) from None
            return 0
        code = 0
        with standard_input() as lines:
            for number, line in enumerate(lines, 1):
                try:
                    ask(line)
                except InvalidEvent as error:
                    print(f"placewire: line {number}: {error}", file=sys.stderr, flush=True)
                    code = 1
        return code


@contextmanager
def open_answerer(options: QueryOptions) -> Iterator[Callable[[str | bytes], None]]:
    """Yield a function that answers a query from a state or a server and prints the answer."""
    if options.target.state is None:
        with open_client(options.target) as client:
            yield partial(print_server_answer, client, options=options)
        return
    with Snapshot(options.target.state) as snapshot:
        if snapshot.manifest is None:
            print("placewire: nothing is committed yet", file=sys.stderr)

        def ask(query: str | bytes) -> None:
            if options.query == "-":
                snapshot.refresh()
            print_state_answer(snapshot, query, options)

        yield ask


def print_server_answer(client: Client, query: str | bytes, options: QueryOptions) -> None:
    """Print a server's answer; raises InvalidEvent for a query that it rejects."""
    asked = decode_object(query)
    started = time.perf_counter()
    try:
        told = client.query(asked, options.with_data)
    except Declined as error:
        if error.status != 422:
            raise
        raise InvalidEvent(str(error)) from None
    took_ms = 1_000 * (time.perf_counter() - started)
    if sys.stdout is None:
        raise Unusable("standard output is closed")
    sys.stdout.buffer.write(encode_line(told))
    sys.stdout.buffer.flush()
    if options.timing:
        print(f"answered in {took_ms:.2f} ms, the way to the server included", file=sys.stderr)


@contextmanager
def standard_input() -> Iterator[Iterable[bytes]]:
    """Yield the lines of standard input as they arrive."""
    if sys.stdin is None:
        raise Unusable("standard input is closed")
    source: BinaryIO = sys.stdin.buffer
    yield iter(source.readline, b"")


def print_state_answer(snapshot: Snapshot, query: str | bytes, options: QueryOptions) -> None:
    """Print the answer of a state to one query."""
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
    """Answer a query; return the time in milliseconds and the line."""
    started = time.perf_counter()
    line = snapshot.answer_line(query, options.with_data)
    return 1_000 * (time.perf_counter() - started), line
