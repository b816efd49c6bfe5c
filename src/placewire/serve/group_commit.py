"""Group commit: requests that wait together are written together, and replied to afterwards.

One thread writes. It decides, in the order in which requests came, who may change which
subscription and which request has been answered before; then lines and notes go to disk for good,
then to the ledger, then the pipeline may see them, then replies go out.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from placewire.model.events import UNSET, SubscribeEvent, UnsubscribeEvent, decode_event
from placewire.model.times import parse_timestamp
from placewire.serve.errors import Refused, Unavailable
from placewire.serve.ledger import Change, Held, Ledger
from placewire.state.journal import Note, list_files
from placewire.state.journalwriter import JournalWriter, read_entries, read_notes

MOST_LINES = 20_000  # in one write
APPLY_AT_ONCE = 10_000
AGAIN_S = 1.0  # after which a ledger that failed is tried again


class Repeat(NamedTuple):
    """By what a request is known that comes again: its idempotency key, a digest of its body.

    Of a body that has many events, its lines too: so many were taken if it comes with more.
    """

    key: str = ""
    digest: str = ""
    lines: int = 0


NO_REPEAT = Repeat()


def digest_of(method: str, path: str, body: bytes) -> str:
    """By what the body of a request is known again."""
    asked = f"{method} {path}\n".encode("utf-8", "surrogatepass")
    return hashlib.sha256(asked + body).hexdigest()


class Request:
    """Lines of one owner that are accepted together, or not at all."""

    def __init__(
        self,
        lines: Sequence[bytes],
        owner: str,
        changes: Sequence[Change] = (),
        key: Repeat = NO_REPEAT,
        latest_us: int = 0,
        every: bool = False,
    ) -> None:
        self.lines = lines
        self.owner = owner
        self.changes = changes  # their seqs count from the first line
        self.key, self.digest, self.body_lines = key
        self.latest_us = latest_us  # of the times of its lines
        self.every = every  # may change everybody's subscriptions, which stay theirs
        self.repeated = False  # what has this key is written already
        self.reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()


class Committer:
    """Writes the journal and keeps the ledger's subscriptions in step with it."""

    def __init__(self, writer: JournalWriter, ledger: Ledger, now_us: int | None = None) -> None:
        self.writer = writer
        self.ledger = ledger
        self.now_us = now_us  # the clock of the events, by all that is written
        self.failed = ""  # why nothing can be written, until it can
        self.lines = 0
        self.writes = 0
        self._waiting: list[Request] = []
        self._changed = threading.Condition()
        self._closing = False
        self._owed_changes: list[Change] = []  # that are written, and not in the ledger yet
        self._owed_notes: list[Note] = []
        catch_up(ledger, writer.folder, writer.next_seq)
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    async def commit(self, request: Request) -> dict[str, Any]:
        """Write a request; gives its `seq`, and for an old idempotency key the first reply.

        Raises Refused.
        """
        with self._changed:
            if self._closing:
                raise Refused(503, "the service is stopping")
            self._waiting.append(request)
            self._changed.notify()
        return await request.reply

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self.writer.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._closing:
                    self._changed.wait(AGAIN_S if self._owed_notes or self.failed else None)
                if not self._waiting and self._closing:
                    return
                lines = taken = 0
                while taken < len(self._waiting) and lines < MOST_LINES:
                    lines += len(self._waiting[taken].lines)
                    taken += 1
                group, self._waiting = self._waiting[:taken], self._waiting[taken:]
            try:
                if group:
                    self._write_all(group)
                elif self._owed_notes or self.failed:
                    self._try_again()
            except Exception as error:
                self.failed = first_line(error)
                for request in group:
                    settle(request, Refused(503, f"nothing can be written: {self.failed}"))

    def _write_all(self, group: Sequence[Request]) -> None:
        """Write a group; while the ledger is away, those that need nothing of it."""
        try:
            self._write(group)
        except Unavailable as error:
            for request in group:
                if request.changes or request.key:
                    settle(request, Refused(503, first_line(error), {"retry-after": "1"}))
            plain = [one for one in group if not (one.changes or one.key)]
            if plain:
                self._write(plain)

    def _write(self, group: Sequence[Request]) -> None:
        replies: dict[tuple[str, str], dict[str, Any]] = {}
        lines: list[bytes] = []
        notes: list[Note] = []
        changes: list[Change] = []
        answers: list[tuple[Request, dict[str, Any]]] = []
        seq, at_us = self.writer.next_seq, time.time_ns() // 1_000
        names = [change.id for request in group for change in request.changes]
        holders = Holders(self.ledger.find_all(names).values() if names else (), self.now_us)
        for change in self._owed_changes:
            holders.apply(change)
        for note in self._owed_notes:
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
                        told = {"sent_lines": known["lines"]} if known.get("lines") else {}
                        settle(request, Refused(422, why, facts=told))
                    continue
            try:
                made = holders.allow(request.changes, request.owner, request.every)
            except Refused as refused:
                settle(request, refused)
                continue
            reply: dict[str, Any] = {"seq": seq, "digest": request.digest}
            if request.key and request.body_lines:
                reply["lines"] = request.body_lines
            if len(made) == 1:
                reply["id"] = made[0].id  # may have been made for this request
                reply["replaced"] = holders.live(made[0]) is not None
            for change in made:
                holders.apply(change)
            holders.advance(request.latest_us)
            changes += [change._replace(seq=seq + change.seq) for change in made]
            notes += note_owners(made, seq, at_us)
            if request.key:
                size = len(request.lines)
                notes.append(Note(seq, 0, request.owner, request.key, at_us, reply, size))
                replies[request.owner, request.key] = reply
            lines += request.lines
            seq += len(request.lines)
            answers.append((request, reply))
        why = self.failed if self._owed_notes else ""
        if lines:
            self.writer.append(lines, notes)
            self.lines += len(lines)
            self.writes += 1
            self._owed_changes += changes
            self._owed_notes += notes
            self.now_us = holders.now_us
            why = self._tell_ledger()
        for request, reply in answers:
            late = why and (request.changes or request.key)
            settle(request, Refused(503, f"{why}; written as {reply['seq']}") if late else reply)

    def _try_again(self) -> None:
        """See, with nothing to write, whether what failed works again."""
        self.writer.probe()
        self._tell_ledger()

    def _tell_ledger(self) -> str:
        """Bring the ledger up to the journal, then let the pipeline see it; or say why not."""
        if self._owed_notes:
            try:
                self.ledger.apply(self._owed_changes, self._owed_notes, self.writer.next_seq)
            except Exception as error:
                self.failed = f"the ledger cannot be written: {first_line(error)}"
                return self.failed
            self._owed_changes, self._owed_notes = [], []
        self.writer.publish()
        self.failed = ""
        return ""


def first_line(error: Exception) -> str:
    """An error in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def note_owners(changes: Sequence[Change], seq: int, at_us: int) -> list[Note]:
    """Whose changes are, for a journal whose lines cannot say it: a note for each run of them."""
    notes: list[Note] = []
    for change in changes:
        at, last = seq + change.seq, notes[-1] if notes else None
        if last is not None and last.owner == change.owner and last.seq + last.rows == at:
            notes[-1] = Note(last.seq, last.rows + 1, last.owner, "", at_us)
        else:
            notes.append(Note(at, 1, change.owner, "", at_us))
    return notes


def settle(request: Request, outcome: dict[str, Any] | Exception) -> None:
    """Hand an outcome to the request's own loop, if somebody still waits there."""
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
    """Apply what a crash kept from the ledger: changes that the journal has."""
    first = ledger.applied_seq
    files = list_files(folder)
    if files and files[0].first_seq > first:
        ledger.miss_spells(files[0].first_seq)
    notes = list(read_notes(folder, first))
    owners = {note.seq + row: note.owner for note in notes for row in range(note.rows)}
    changes: list[Change] = []
    for seq, line in read_entries(folder, first) if owners else ():
        change = read_change(line) if seq in owners else None
        if change is not None:
            changes.append(change._replace(seq=seq, owner=owners[seq]))
        if len(changes) >= APPLY_AT_ONCE:
            ledger.apply(changes, notes, seq + 1)
            changes, notes = [], []
    if first < end_seq:
        ledger.apply(changes, notes, end_seq)


def read_change(line: bytes) -> Change | None:
    """What a line changes, if anything; its seq and its owner are not in it."""
    event = decode_event(line)
    if isinstance(event, UnsubscribeEvent):
        return Change(0, event.id, "", ends=True)
    if not isinstance(event, SubscribeEvent):
        return None
    expires = None if event.expires is UNSET else parse_timestamp(event.expires)
    return Change(
        0, event.id, "", False, event.kind, line.decode(), parse_timestamp(event.ts), expires
    )


class Holder(NamedTuple):
    """Who has an id, and until when."""

    owner: str
    expires_us: int | None
    ended: bool


class Holders:
    """Ids as the ledger has them, then as requests that are being written leave them.

    The clock is that of the events: who is expired is decided as the pipeline will decide it.
    """

    def __init__(self, held: Iterable[Held], now_us: int | None) -> None:
        self.now_us = now_us
        self._by_id = {
            one.id: Holder(one.owner, one.expires_us, one.ended_seq is not None) for one in held
        }

    def advance(self, ts_us: int) -> None:
        """Set the clock on by an event that is written."""
        self.now_us = ts_us if self.now_us is None else max(self.now_us, ts_us)

    def apply(self, change: Change) -> None:
        """Take in a change that is written."""
        former = self._by_id.get(change.id)
        if not change.ends:
            self._by_id[change.id] = Holder(change.owner, change.expires_us, False)
        elif former is not None:
            self._by_id[change.id] = former._replace(ended=True)

    def live(self, change: Change) -> Holder | None:
        """Who has the id at this event, if anybody does."""
        holder = self._by_id.get(change.id)
        if holder is None or holder.ended:
            return None
        now_us = max(change.since_us, self.now_us or change.since_us)
        expired = holder.expires_us is not None and holder.expires_us <= now_us
        return None if expired else holder

    def allow(self, changes: Sequence[Change], owner: str, every: bool) -> list[Change]:
        """Changes of one request with whose they are; raises Refused.

        Who may change `every` one changes it in its owner's name.
        """
        return [
            change._replace(owner=self._end(change, owner, every))
            if change.ends
            else change._replace(owner=self._begin(change, owner, every))
            for change in changes
        ]

    def _begin(self, change: Change, owner: str, every: bool) -> str:
        holder = self.live(change)
        if holder is None or holder.owner == owner:
            return owner
        if not every:
            raise Refused(409, f"subscription {change.id!r}: the id is taken, choose another")
        return holder.owner

    def _end(self, change: Change, owner: str, every: bool) -> str:
        holder = self._by_id.get(change.id)
        if holder is None:
            raise Refused(404, f"subscription {change.id!r}: is not known")
        if holder.ended or not (every or holder.owner == owner):
            raise Refused(404, f"subscription {change.id!r}: has ended")
        return holder.owner
