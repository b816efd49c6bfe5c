"""`placewire query`: answer snapshot queries from a state directory or a server."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from placewire.cli.connection import CommandTarget, open_client
from placewire.model.errors import InvalidEvent, Unusable
from placewire.queries.answer import encode_line
from placewire.queries.snapshot import Snapshot, decode_object
from placewire.serve.client import Client, Declined


def run_query(query: str, target: CommandTarget, with_data: bool, timing: bool) -> int:
    """Answer one query, or with `-` each line of standard input; return the exit code.

    An invalid line is reported on standard error and does not stop the others.
    """
    many = query == "-"
    with open_answerer(target, many, with_data, timing) as ask:
        if not many:
            try:
                ask(query)
            except InvalidEvent as error:
                raise Unusable(str(error)) from None
            return 0
        if sys.stdin is None:
            raise Unusable("standard input is closed")
        code = 0
        for number, line in enumerate(iter(sys.stdin.buffer.readline, b""), 1):
            try:
                ask(line)
            except InvalidEvent as error:
                print(f"placewire: line {number}: {error}", file=sys.stderr, flush=True)
                code = 1
        return code


@contextmanager
def open_answerer(
    target: CommandTarget, many: bool, with_data: bool, timing: bool
) -> Iterator[Callable[[str | bytes], None]]:
    """Yield a function that answers a query from a state or a server and prints the answer."""
    if target.state is None:
        with open_client(target) as client:
            yield partial(print_server_answer, client, with_data=with_data, timing=timing)
        return
    with Snapshot(target.state) as snapshot:
        if snapshot.manifest is None:
            print("placewire: nothing is committed yet", file=sys.stderr)

        def ask(query: str | bytes) -> None:
            if many:
                snapshot.refresh()
            print_state_answer(snapshot, query, with_data, timing)

        yield ask


def print_server_answer(client: Client, query: str | bytes, with_data: bool, timing: bool) -> None:
    """Print a server's answer; raises InvalidEvent for a query that it rejects."""
    asked = decode_object(query)
    started = time.perf_counter()
    try:
        answer = client.query(asked, with_data)
    except Declined as error:
        if error.status != 422:
            raise
        raise InvalidEvent(str(error)) from None
    took_ms = 1_000 * (time.perf_counter() - started)
    print_answer(encode_line(answer))
    if timing:
        print(f"answered in {took_ms:.2f} ms, the way to the server included", file=sys.stderr)


def print_state_answer(
    snapshot: Snapshot, query: str | bytes, with_data: bool, timing: bool
) -> None:
    """Print the answer of a state to one query."""
    times_ms = []
    for _ in range(2 if timing else 1):
        started = time.perf_counter()
        line = snapshot.answer_line(query, with_data)
        times_ms.append(1_000 * (time.perf_counter() - started))
    print_answer(line)
    if timing:
        objects = sum(section.retained.total for section in snapshot.sections)
        print(
            f"answered in {times_ms[1]:.2f} ms from {objects:,} objects in"
            f" {len(snapshot.sections)} files ({times_ms[0]:.0f} ms the first time)",
            file=sys.stderr,
        )


def print_answer(line: bytes) -> None:
    """Write one line to standard output at once."""
    if sys.stdout is None:
        raise Unusable("standard output is closed")
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
