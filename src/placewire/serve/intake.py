"""What clients send, as lines of the log: types, times and ids filled in, each line checked."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from placewire.engine.admitting import Admission, Admitted, say_leap
from placewire.kernels.jsonlines import find_lines, scan_objects
from placewire.model.errors import InvalidEvent
from placewire.model.events import (
    ObjectEvent,
    SubscribeEvent,
    name_infinite,
    name_surrogate,
    refuse_repeated_keys,
)
from placewire.model.times import format_timestamp
from placewire.serve.errors import Refused
from placewire.serve.group_commit import read_change
from placewire.serve.ledger import Change
from placewire.state.journalwriter import read_entries
from placewire.state.manifest import Manifest

MOST_ERRORS = 100  # shown of a bulk
MOST_LINES = 100_000  # of one


class Incoming(NamedTuple):
    """A line that may be written, and its time."""

    line: bytes
    ts_us: int


class Bulk(NamedTuple):
    """Lines of one body: those that may be written, and what is wrong with the others."""

    lines: list[Incoming]
    numbers: list[int]  # of these in the body, from 1
    changes: list[Change]  # their seqs count from the first line
    rejected: int
    errors: list[dict[str, Any]]


def wind_clock(admission: Admission, manifest: Manifest | None, folder: Path) -> int | None:
    """Set the clock by all that a journal has, what is committed and the rest; gives it."""
    admission.now_us = manifest.now_us if manifest is not None else None
    first = manifest.next_seq if manifest is not None else 0
    for _, line in read_entries(folder, first):
        try:
            admission.advance(admission.admit(line).ts_us)
        except InvalidEvent:
            continue
    return admission.now_us


def now_text() -> str:
    return format_timestamp(time.time_ns() // 1_000)


def complete(given: dict[str, Any], kind: str, **fixed: str) -> bytes:
    """An event with what its sender left out; raises InvalidEvent."""
    if given.get("type", kind) != kind:
        raise InvalidEvent(f"type: must be {kind!r}, got {shown(given['type'])}")
    for name, value in fixed.items():
        if given.get(name, value) != value:
            raise InvalidEvent(
                f"{name}: must be {value!r} as in the address, got {shown(given[name])}"
            )
    event = {**given, **fixed, "type": kind}
    event.setdefault("ts", now_text())
    if kind == "subscribe":
        event.setdefault("id", secrets.token_hex(8))
    try:
        return msgspec.json.encode(event)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEvent(f"the event cannot be written as JSON: {error}") from None


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def decode_object(body: bytes) -> dict[str, Any]:
    """One JSON object with no key twice; raises Refused."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        why = name_infinite(body, error) or name_surrogate(body)
        why = why or f"must be one JSON object: {error}"
        raise Refused(400, f"body: {why}") from None
    if not isinstance(decoded, dict):
        raise Refused(422, f"body: must be one JSON object, got {type(decoded).__name__}")
    try:
        refuse_repeated_keys(body)
    except InvalidEvent as error:
        raise Refused(422, f"body: {error}") from None
    return decoded


def read_object(admission: Admission, given: dict[str, Any]) -> Incoming:
    """One object; raises InvalidEvent."""
    admitted = admission.admit(complete(given, "object"))
    return Incoming(admitted.line, admitted.ts_us)


def read_subscription(admission: Admission, given: dict[str, Any], **fixed: str) -> Admitted:
    """One subscription; raises InvalidEvent."""
    admitted = admission.admit(complete(given, "subscribe", **fixed))
    refuse_nul(admitted.event.id)
    return admitted


def refuse_nul(name: str) -> None:
    """Ids of subscriptions go to databases, and PostgreSQL has no NUL; raises InvalidEvent."""
    if "\x00" in name:
        raise InvalidEvent("id must not have a NUL character")


def read_bulk(admission: Admission, body: bytes, kind: str) -> Bulk:
    """A body of lines; those with nothing in them are passed over.

    What a plain line says is read by a kernel, any other line strictly.
    """
    if body.count(b"\n") > MOST_LINES:
        raise Refused(413, f"body: must have at most {MOST_LINES} lines, got more")
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    times: dict[int, int] = {}
    if kind == "object" and lines:
        raw = np.frombuffer(b"\n".join(lines) + b"\n", np.uint8)
        plain, _ = scan_objects(raw, find_lines(raw))
        times = dict(zip(plain.line.tolist(), plain.ts_us.tolist(), strict=True))
    kept: list[Incoming] = []
    numbers: list[int] = []
    changes: list[Change] = []
    errors: list[dict[str, Any]] = []
    rejected = 0
    for number, line in enumerate(lines):
        if number in times:
            numbers.append(number + 1)
            kept.append(Incoming(line, times[number]))
            continue
        if not line.strip():
            continue
        try:
            admitted = admit_line(admission, line, kind)
            if isinstance(admitted.event, SubscribeEvent):
                change = read_change(admitted.line)
                assert change is not None
                changes.append(change._replace(seq=len(kept)))
            numbers.append(number + 1)
            kept.append(Incoming(admitted.line, admitted.ts_us))
        except (InvalidEvent, Refused) as error:
            rejected += 1
            if len(errors) < MOST_ERRORS:
                why = str(error).removeprefix("body: ")
                errors.append({"line": number + 1, "error": why})
    return Bulk(kept, numbers, changes, rejected, errors)


def without_leaps(bulk: Bulk, admission: Admission) -> Bulk:
    """A bulk without the lines whose times leap, of lines that are written now in this order."""
    now_us, ahead_us = admission.now_us, admission.settings.max_ahead_us
    kept: list[int] = []
    errors = list(bulk.errors)
    for row, line in enumerate(bulk.lines):
        if now_us is not None and line.ts_us - now_us > ahead_us:
            errors.append({"line": bulk.numbers[row], "error": say_leap(line.ts_us, now_us)})
            continue
        now_us = line.ts_us if now_us is None else max(now_us, line.ts_us)
        kept.append(row)
    if len(kept) == len(bulk.lines):
        return bulk
    place = {row: at for at, row in enumerate(kept)}
    return Bulk(
        [bulk.lines[row] for row in kept],
        [bulk.numbers[row] for row in kept],
        [c._replace(seq=place[c.seq]) for c in bulk.changes if c.seq in place],
        bulk.rejected + len(bulk.lines) - len(kept),
        sorted(errors, key=lambda error: error["line"])[:MOST_ERRORS],
    )


def admit_line(admission: Admission, line: bytes, kind: str) -> Admitted:
    """One line of a bulk, completed if something was left out; raises InvalidEvent or Refused."""
    try:
        admitted = admission.admit(line)
        expected = ObjectEvent if kind == "object" else SubscribeEvent
        fits = isinstance(admitted.event, expected)
    except InvalidEvent:
        fits = False
    if not fits:
        admitted = admission.admit(complete(decode_object(line), kind))
    if kind == "subscribe":
        refuse_nul(admitted.event.id)
    return admitted
