"""`placewire publish`: send objects of a file, a pipe or the command line."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from placewire.cli.connection import CommandTarget, open_writer
from placewire.cli.output import ProgressLine
from placewire.model.errors import Unusable
from placewire.serve.client.client import Sent, read_chunks, send_chunks

MAX_KEY_CHARS = 100  # of an idempotency key
MAX_JSON_ERRORS = 1_000
MAX_PRINTED_ERRORS = 20


class TypedObject(NamedTuple):
    """The object of `--text` and its fields."""

    text: str | None
    lon: float | None
    lat: float | None
    id: str | None
    ts: str | None
    data: str | None


def run_publish(
    file: str | None, one: TypedObject, target: CommandTarget, name: str, as_json: bool
) -> int:
    """Publish objects under an idempotency key and return the exit code; raises Unusable."""
    if len(name) > MAX_KEY_CHARS or not name.isprintable():
        raise Unusable(f"idempotency-key: must be at most {MAX_KEY_CHARS} printable characters")
    if (file is None) == (one.text is None):
        raise Unusable("publish: give a FILE (- for standard input) or --text, one of them")
    if file is None:
        return publish_one(one, target, name, as_json)
    stray = [f"--{field}" for field, value in one._asdict().items() if value is not None]
    if stray:
        raise Unusable(f"publish: {stray[0]} goes with --text, not with a FILE")
    return send_file("objects", file, target, name, as_json)


def publish_one(one: TypedObject, target: CommandTarget, name: str, as_json: bool) -> int:
    """Publish the object of `--text`."""
    if one.lon is None or one.lat is None:
        raise Unusable("publish: --text needs --lon and --lat")
    event: dict[str, Any] = {k: value for k, value in one._asdict().items() if value is not None}
    # An idempotency key also fixes the id: a retry publishes the same object.
    made = hashlib.sha256(name.encode()).hexdigest()[:16] if name else ""
    event.setdefault("id", made or secrets.token_hex(8))
    if one.data is not None:
        event["data"] = read_json(one.data, "data")
    with open_writer(target) as writer:
        chunks = [[msgspec.json.encode(event)]]
        (sent,) = send_chunks(partial(writer.send, "objects"), chunks, name)
    if sent.rejected:
        raise Unusable(sent.errors[0].error)
    if as_json:
        print(json.dumps({"id": event["id"], "seq": sent.first_seq}))
    else:
        print(f"published {event['id']}, seq {sent.first_seq}")
    return 0


def send_file(what: str, file: str, target: CommandTarget, name: str, as_json: bool) -> int:
    """Send the lines of a file or of standard input; return the exit code."""
    started = time.monotonic()
    sent = Sent()
    printed = 0
    with (
        open_lines(file) as (source, size),
        open_writer(target) as writer,
        ProgressLine(what, size) as progress,
    ):
        read = 0

        def note(count: int) -> None:
            nonlocal read
            read += count

        chunks = read_chunks(source, file, note, steady=bool(name))
        name = f"{name}-{what}" if name and what != "objects" else name
        for more in send_chunks(partial(writer.send, what), chunks, name):
            printed = print_errors(progress.print_line, more, printed) if not as_json else printed
            sent = sent.with_more(more)
            sent = sent._replace(errors=sent.errors[:MAX_JSON_ERRORS])
            progress.update(read, f"{sent.accepted:,} accepted, {sent.rejected:,} rejected")
    took_s = max(time.monotonic() - started, 1e-9)
    if as_json:
        print(json.dumps({**sent.as_facts(), "seconds": round(took_s, 3)}))
    else:
        if sent.rejected > printed:
            print(f"and {sent.rejected - printed:,} more lines rejected", file=sys.stderr)
        print(format_sent(what, sent, took_s))
    return 1 if sent.rejected else 0


def print_errors(print_line: Callable[[str], None], sent: Sent, printed: int) -> int:
    """Print the first rejected lines; return how many are printed by now."""
    for error in sent.errors[: max(MAX_PRINTED_ERRORS - printed, 0)]:
        print_line(f"line {error.line}: {error.error}")
        printed += 1
    return printed


def format_sent(what: str, sent: Sent, took_s: float) -> str:
    """Format what was sent on one line."""
    seqs = f", seq {sent.first_seq} to {sent.last_seq}" if sent.accepted else ""
    return (
        f"{what} {sent.accepted}{seqs}, rejected {sent.rejected},"
        f" {(sent.accepted + sent.rejected) / took_s:.0f} lines/s"
    )


@contextlib.contextmanager
def open_lines(file: str) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file or standard input; yield it with its size in bytes, 0 if unknown."""
    if file == "-":
        if sys.stdin is None:
            raise Unusable("standard input is closed")
        yield sys.stdin.buffer, 0
        return
    try:
        source = open(Path(file), "rb")  # noqa: SIM115
        found = os.fstat(source.fileno())
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Unusable(f"{file}: cannot be read: {why.lower()}") from None
    with source:
        yield source, found.st_size if stat.S_ISREG(found.st_mode) else 0


def read_json(text: str, what: str) -> Any:
    """Parse the JSON value of an option; raises Unusable."""
    try:
        return json.loads(text, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"{what}: must be JSON: {error}") from None


def reject_constant(name: str) -> float:
    """Reject NaN and the infinities, which JSON does not have."""
    raise ValueError(f"a number must be finite, got {name}")
