"""Group commit: write waiting requests to the journal together, then reply to each.

One thread writes. In arrival order it decides which requests may change a subscription and which
repeat an earlier idempotency key. It then syncs lines and notes to disk, updates the ledger, makes
the lines visible to the pipeline, and sends the replies.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from placewire.model.errors import one_line
from placewire.model.events import UNSET, SubscribeEvent, UnsubscribeEvent, decode_event
from placewire.model.times import parse_timestamp
from placewire.serve import Refused, Unavailable
from placewire.serve.ledger import Ledger, SubscriptionChange, SubscriptionRow
from placewire.storage.journal import JournalWriter, Note, list_files, read_entries, read_notes

MAX_LINES = 20_000  # per write
APPLY_BATCH = 10_000
RETRY_S = 1.0  # between attempts after a failure


class IdempotencyKey(NamedTuple):
    """The idempotency key of a request, with a digest of its body.

    For a bulk body also its number of lines, so that a longer body under the same key is
    recognized.
    """

    key: str = ""
    digest: str = ""
    lines: int = 0


NO_KEY = IdempotencyKey()


def digest_request(method: str, path: str, body: bytes) -> str:
    """Digest of a request, to recognize a repeat."""
    asked = f"{method} {path}\n".encode("utf-8", "surrogatepass")
    return hashlib.sha256(asked + body).hexdigest()


class WriteRequest:
    """Lines of one owner that are accepted together or not at all."""

    def __init__(
        self,
        lines: Sequence[bytes],
        owner: str,
        changes: Sequence[SubscriptionChange] = (),
        key: IdempotencyKey = NO_KEY,
        latest_us: int = 0,
        any_owner: bool = False,
    ) -> None:
        self.lines = lines
        self.owner = owner
        self.changes = changes  # seqs relative to the first line
        self.key, self.digest, self.body_lines = key
        self.latest_us = latest_us  # the latest time among its lines
        self.any_owner = any_owner  # may change subscriptions of other owners
        self.repeated = False  # whether its key was seen before
        self.reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()


class GroupCommitter:
    """Writes the journal, and keeps the ledger's subscriptions in step with it."""

    def __init__(self, writer: JournalWriter, ledger: Ledger, now_us: int | None = None) -> None:
        self.writer = writer
        self.ledger = ledger
        self.now_us = now_us  # the event clock after all written lines
        self.failed = ""  # the current error; empty: none
        self.lines = 0
        self.writes = 0
        self._waiting: list[WriteRequest] = []
        self._condition = threading.Condition()
        self._closing = False
        self._pending_changes: list[SubscriptionChange] = []  # written, but not in the ledger yet
        self._pending_notes: list[Note] = []
        catch_up(ledger, writer.folder, writer.next_seq)
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    async def commit(self, request: WriteRequest) -> dict[str, Any]:
        """Write a request; returns its `seq`, or the first reply to a repeated idempotency key.

        Raises Refused.
        """
        with self._condition:
            if self._closing:
                raise Refused(503, "the service is stopping")
            self._waiting.append(request)
            self._condition.notify()
        return await request.reply

    def close(self) -> None:
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join()
        self.writer.close()

    def _work(self) -> None:
        while True:
            with self._condition:
                if not self._waiting and not self._closing:
                    self._condition.wait(RETRY_S if self._pending_notes or self.failed else None)
                if not self._waiting and self._closing:
                    return
                lines = taken = 0
                while taken < len(self._waiting) and lines < MAX_LINES:
                    lines += len(self._waiting[taken].lines)
                    taken += 1
                group, self._waiting = self._waiting[:taken], self._waiting[taken:]
            try:
                if group:
                    self._write_all(group)
                elif self._pending_notes or self.failed:
                    self.writer.probe()
                    self._update_ledger()
            except Exception as error:
                self.failed = one_line(error)
                for request in group:
                    resolve(request, Refused(503, f"nothing can be written: {self.failed}"))

    def _write_all(self, group: Sequence[WriteRequest]) -> None:
        """Write a group; while the ledger is unavailable, only requests that do not need it."""
        try:
            self._write(group)
        except Unavailable as error:
            for request in group:
                if request.changes or request.key:
                    resolve(request, Refused(503, one_line(error), {"retry-after": "1"}))
            plain = [one for one in group if not (one.changes or one.key)]
            if plain:
                self._write(plain)

    def _write(self, group: Sequence[WriteRequest]) -> None:
        replies: dict[tuple[str, str], dict[str, Any]] = {}
        lines: list[bytes] = []
        notes: list[Note] = []
        changes: list[SubscriptionChange] = []
        answers: list[tuple[WriteRequest, dict[str, Any]]] = []
        seq, at_us = self.writer.next_seq, time.time_ns() // 1_000
        names = [change.id for request in group for change in request.changes]
        owners = IdOwners(self.ledger.find_all(names).values() if names else (), self.now_us)
        for change in self._pending_changes:
            owners.apply(change)
        for note in self._pending_notes:
            if note.key and note.reply is not None:
                replies[note.owner, note.key] = note.reply
        for request in group:
            if request.key:
                known = replies.get((request.owner, request.key))
                known = known or self.ledger.reply_of(request.owner, request.key)
                if known is not None:
                    request.repeated = True
                    if known["digest"] == request.digest:
                        answers.append((request, known))
                    else:
                        why = "idempotency-key: was given with another body"
                        facts = {"sent_lines": known["lines"]} if known.get("lines") else {}
                        resolve(request, Refused(422, why, facts=facts))
                    continue
            try:
                made = owners.authorize(request.changes, request.owner, request.any_owner)
            except Refused as refused:
                resolve(request, refused)
                continue
            reply: dict[str, Any] = {"seq": seq, "digest": request.digest}
            if request.key and request.body_lines:
                reply["lines"] = request.body_lines
            if len(made) == 1:
                reply["id"] = made[0].id  # generated if the request had none
                reply["replaced"] = owners.live_owner(made[0]) is not None
            for change in made:
                owners.apply(change)
            owners.advance(request.latest_us)
            changes += [change._replace(seq=seq + change.seq) for change in made]
            notes += ownership_notes(made, seq, at_us)
            if request.key:
                size = len(request.lines)
                notes.append(Note(seq, 0, request.owner, request.key, at_us, reply, size))
                replies[request.owner, request.key] = reply
            lines += request.lines
            seq += len(request.lines)
            answers.append((request, reply))
        why = self.failed if self._pending_notes else ""
        if lines:
            self.writer.append(lines, notes)
            self.lines += len(lines)
            self.writes += 1
            self._pending_changes += changes
            self._pending_notes += notes
            self.now_us = owners.now_us
            why = self._update_ledger()
        for request, reply in answers:
            late = why and (request.changes or request.key)
            resolve(request, Refused(503, f"{why}; written as {reply['seq']}") if late else reply)

    def _update_ledger(self) -> str:
        """Apply pending changes to the ledger, then publish the lines; returns an error or ""."""
        if self._pending_notes:
            try:
                self.ledger.apply(self._pending_changes, self._pending_notes, self.writer.next_seq)
            except Exception as error:
                self.failed = f"the ledger cannot be written: {one_line(error)}"
                return self.failed
            self._pending_changes, self._pending_notes = [], []
        self.writer.publish()
        self.failed = ""
        return ""


def ownership_notes(changes: Sequence[SubscriptionChange], seq: int, at_us: int) -> list[Note]:
    """Notes that record the owner of each change, one per run of changes of one owner."""
    notes: list[Note] = []
    for change in changes:
        at, last = seq + change.seq, notes[-1] if notes else None
        if last is not None and last.owner == change.owner and last.seq + last.rows == at:
            notes[-1] = Note(last.seq, last.rows + 1, last.owner, "", at_us)
        else:
            notes.append(Note(at, 1, change.owner, "", at_us))
    return notes


def resolve(request: WriteRequest, outcome: dict[str, Any] | Exception) -> None:
    """Pass the outcome to the event loop of the request, if it still waits."""
    future = request.reply

    def hand() -> None:
        if future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    future.get_loop().call_soon_threadsafe(hand)


def catch_up(ledger: Ledger, folder: Path, end_seq: int) -> None:
    """Apply changes that are in the journal but, after a crash, not in the ledger."""
    first = ledger.applied_seq
    files = list_files(folder)
    if files and files[0].first_seq > first:
        ledger.mark_history_gap(files[0].first_seq)
    notes = list(read_notes(folder, first))
    owners = {note.seq + row: note.owner for note in notes for row in range(note.rows)}
    changes: list[SubscriptionChange] = []
    for seq, line in read_entries(folder, first) if owners else ():
        change = read_change(line) if seq in owners else None
        if change is not None:
            changes.append(change._replace(seq=seq, owner=owners[seq]))
        if len(changes) >= APPLY_BATCH:
            ledger.apply(changes, notes, seq + 1)
            changes, notes = [], []
    if first < end_seq:
        ledger.apply(changes, notes, end_seq)


def read_change(line: bytes) -> SubscriptionChange | None:
    """The change that a line makes to subscriptions, if any, without seq and owner."""
    event = decode_event(line)
    if isinstance(event, UnsubscribeEvent):
        return SubscriptionChange(0, event.id, "", ends=True)
    if not isinstance(event, SubscribeEvent):
        return None
    expires = None if event.expires is UNSET else parse_timestamp(event.expires)
    return SubscriptionChange(
        0, event.id, "", False, event.kind, line.decode(), parse_timestamp(event.ts), expires
    )


class IdOwner(NamedTuple):
    """The owner of an id, and when the subscription expires."""

    owner: str
    expires_us: int | None
    ended: bool


class IdOwners:
    """Owners of ids as the ledger has them, plus the requests that are being written.

    Expiry follows the event clock, as in the pipeline.
    """

    def __init__(self, rows: Iterable[SubscriptionRow], now_us: int | None) -> None:
        self.now_us = now_us
        self._by_id = {
            one.id: IdOwner(one.owner, one.expires_us, one.ended_seq is not None) for one in rows
        }

    def advance(self, ts_us: int) -> None:
        """Advance the event clock to the time of a written event."""
        self.now_us = ts_us if self.now_us is None else max(self.now_us, ts_us)

    def apply(self, change: SubscriptionChange) -> None:
        former = self._by_id.get(change.id)
        if not change.ends:
            self._by_id[change.id] = IdOwner(change.owner, change.expires_us, False)
        elif former is not None:
            self._by_id[change.id] = former._replace(ended=True)

    def live_owner(self, change: SubscriptionChange) -> IdOwner | None:
        """The owner of a live subscription at this change; None if the id is free."""
        current = self._by_id.get(change.id)
        if current is None or current.ended:
            return None
        now_us = max(change.since_us, self.now_us or change.since_us)
        expired = current.expires_us is not None and current.expires_us <= now_us
        return None if expired else current

    def authorize(
        self, changes: Sequence[SubscriptionChange], owner: str, any_owner: bool
    ) -> list[SubscriptionChange]:
        """Set the owner of each change of a request; raises Refused.

        With `any_owner`, changes apply in the name of the current owner.
        """
        return [
            change._replace(owner=self._owner_of(change, owner, any_owner)) for change in changes
        ]

    def _owner_of(self, change: SubscriptionChange, owner: str, any_owner: bool) -> str:
        current = self._by_id.get(change.id) if change.ends else self.live_owner(change)
        if current is None and change.ends:
            raise Refused(404, f"subscription {change.id!r}: is not known")
        if current is None:
            return owner
        allowed = any_owner or current.owner == owner
        if change.ends and (current.ended or not allowed):
            raise Refused(404, f"subscription {change.id!r}: has ended")
        if not allowed:
            raise Refused(409, f"subscription {change.id!r}: the id is taken, choose another")
        return current.owner
