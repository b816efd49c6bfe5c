"""Validate events from clients and complete them with type, time and id."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from placewire.ingest.admission import Admission, Admitted, describe_rejected
from placewire.kernels.json.objects import find_lines, scan_objects
from placewire.model.errors import InvalidEvent
from placewire.model.events import (
    ObjectEvent,
    SubscribeEvent,
    check_unique_keys,
    describe_infinite,
    describe_surrogate,
)
from placewire.model.times import format_timestamp
from placewire.serve import Refused
from placewire.serve.group_commit import read_change
from placewire.serve.ledger import SubscriptionChange
from placewire.storage.journal import read_entries
from placewire.storage.manifest import Manifest

MAX_ERRORS = 100  # reported per bulk body
MAX_LINES = 100_000  # per bulk body


class JournalLine(NamedTuple):
    """A validated line and its time."""

    line: bytes
    ts_us: int


class BulkLines(NamedTuple):
    """The lines of a bulk body: those accepted, and the errors of the others."""

    lines: list[JournalLine]
    numbers: list[int]  # line numbers in the body, from 1
    changes: list[SubscriptionChange]  # their seqs count from the first line
    rejected: int
    errors: list[dict[str, Any]]

    def counts(self) -> dict[str, Any]:
        """The counts and errors as replies have them."""
        return {"accepted": len(self.lines), "rejected": self.rejected, "errors": self.errors}


def restore_clock(admission: Admission, manifest: Manifest | None, folder: Path) -> int | None:
    """Set the event clock to the end of the journal, committed or not; returns it."""
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


def complete_event(given: dict[str, Any], event_type: str, **fixed: str) -> bytes:
    """Encode an event with the fields that its sender left out; raises InvalidEvent."""
    if given.get("type", event_type) != event_type:
        raise InvalidEvent(f"type: must be {event_type!r}, got {shorten(given['type'])}")
    for name, value in fixed.items():
        if given.get(name, value) != value:
            raise InvalidEvent(
                f"{name}: must be {value!r} as in the address, got {shorten(given[name])}"
            )
    event = {**given, **fixed, "type": event_type}
    event.setdefault("ts", now_text())
    if event_type == "subscribe":
        event.setdefault("id", secrets.token_hex(8))
    try:
        return msgspec.json.encode(event)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEvent(f"the event cannot be written as JSON: {error}") from None


def shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def decode_object(body: bytes) -> dict[str, Any]:
    """Decode one JSON object without repeated keys; raises Refused."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        why = describe_infinite(body, error) or describe_surrogate(body)
        why = why or f"must be one JSON object: {error}"
        raise Refused(400, f"body: {why}") from None
    if not isinstance(decoded, dict):
        raise Refused(422, f"body: must be one JSON object, got {type(decoded).__name__}")
    try:
        check_unique_keys(body)
    except InvalidEvent as error:
        raise Refused(422, f"body: {error}") from None
    return decoded


def read_object(admission: Admission, given: dict[str, Any]) -> JournalLine:
    """Validate one object; raises InvalidEvent."""
    admitted = admission.admit(complete_event(given, "object"))
    return JournalLine(admitted.line, admitted.ts_us)


def read_subscription(admission: Admission, given: dict[str, Any], **fixed: str) -> Admitted:
    """Validate one subscription; raises InvalidEvent."""
    admitted = admission.admit(complete_event(given, "subscribe", **fixed))
    reject_nul(admitted.event.id)
    return admitted


def reject_nul(name: str) -> None:
    """Reject ids with NUL, which PostgreSQL cannot store; raises InvalidEvent."""
    if "\x00" in name:
        raise InvalidEvent("id must not have a NUL character")


def read_bulk(admission: Admission, body: bytes, event_type: str) -> BulkLines:
    """Validate a body of JSON lines; empty lines are skipped.

    A kernel reads plain objects; other lines take the strict path.
    """
    if body.count(b"\n") > MAX_LINES:
        raise Refused(413, f"body: must have at most {MAX_LINES} lines, got more")
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    times: dict[int, int] = {}
    if event_type == "object" and lines:
        raw = np.frombuffer(b"\n".join(lines) + b"\n", np.uint8)
        plain, _ = scan_objects(raw, find_lines(raw))
        times = dict(zip(plain.line.tolist(), plain.ts_us.tolist(), strict=True))
    kept: list[JournalLine] = []
    numbers: list[int] = []
    changes: list[SubscriptionChange] = []
    errors: list[dict[str, Any]] = []
    rejected = 0
    for number, line in enumerate(lines):
        if number in times:
            numbers.append(number + 1)
            kept.append(JournalLine(line, times[number]))
            continue
        if not line.strip():
            continue
        try:
            admitted = admit_line(admission, line, event_type)
            if isinstance(admitted.event, SubscribeEvent):
                change = read_change(admitted.line)
                assert change is not None
                changes.append(change._replace(seq=len(kept)))
            numbers.append(number + 1)
            kept.append(JournalLine(admitted.line, admitted.ts_us))
        except (InvalidEvent, Refused) as error:
            rejected += 1
            if len(errors) < MAX_ERRORS:
                why = str(error).removeprefix("body: ")
                errors.append({"line": number + 1, "error": why})
    return BulkLines(kept, numbers, changes, rejected, errors)


def drop_time_jumps(bulk: BulkLines, admission: Admission) -> BulkLines:
    """Drop the lines of a bulk whose time jumps too far ahead of the lines before."""
    now_us, ahead_us = admission.now_us, admission.settings.max_ahead_us
    kept: list[int] = []
    errors = list(bulk.errors)
    for row, line in enumerate(bulk.lines):
        if now_us is not None and line.ts_us - now_us > ahead_us:
            errors.append(
                {"line": bulk.numbers[row], "error": describe_rejected(line.ts_us, now_us)}
            )
            continue
        now_us = line.ts_us if now_us is None else max(now_us, line.ts_us)
        kept.append(row)
    if len(kept) == len(bulk.lines):
        return bulk
    place = {row: at for at, row in enumerate(kept)}
    return BulkLines(
        [bulk.lines[row] for row in kept],
        [bulk.numbers[row] for row in kept],
        [c._replace(seq=place[c.seq]) for c in bulk.changes if c.seq in place],
        bulk.rejected + len(bulk.lines) - len(kept),
        sorted(errors, key=lambda error: error["line"])[:MAX_ERRORS],
    )


def admit_line(admission: Admission, line: bytes, event_type: str) -> Admitted:
    """Validate one line of a bulk, completed if needed; raises InvalidEvent or Refused."""
    try:
        admitted = admission.admit(line)
        expected = ObjectEvent if event_type == "object" else SubscribeEvent
        fits = isinstance(admitted.event, expected)
    except InvalidEvent:
        fits = False
    if not fits:
        admitted = admission.admit(complete_event(decode_object(line), event_type))
    if event_type == "subscribe":
        reject_nul(admitted.event.id)
    return admitted
