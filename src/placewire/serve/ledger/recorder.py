"""The keeper: committed results go from the outbox to the ledger, then to those who listen.

It has its cursor in the state as any sink has: what it has not got yet is not swept.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from placewire.engine.delivery import Cursor
from placewire.engine.outbox import dead_letters, result_lines
from placewire.serve.ledger import Entry, Ledger
from placewire.state.journal import journal_folder, list_files
from placewire.state.journalwriter import drop_files
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest, manifest_path, read_manifest

LOOKS_S = 0.01
MOST_LINES = 5_000  # taken in one transaction
AGAIN_S = 1.0
FORGETS_S = 600.0

Tell = Callable[[Manifest, list[Entry] | None], None]


class Keeper:
    """Follows the manifests of a state in a thread of its own."""

    def __init__(self, state: StateDir, ledger: Ledger, tell: Tell, keep_us: int) -> None:
        self.state = state
        self.ledger = ledger
        self.tell = tell
        self.keep_us = keep_us
        self.failed = ""
        self.batch = ledger.batch
        self._closing = threading.Event()
        self._forgot_s = 0.0
        self.committed_seq = 0
        self.event_us = -(1 << 62)
        self._thread = threading.Thread(target=self._follow, name="keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._closing.is_set():
            try:
                if manifest_path(self.state, self.batch + 1).exists():
                    self._take(read_manifest(self.state, self.batch + 1))
                else:
                    self._closing.wait(LOOKS_S)
                    self._forget()
                self.failed = ""
            except Exception as error:
                # Whatever it is, nothing is lost: the cursor stays where it is.
                self.failed = " ".join(str(error).split()) or type(error).__name__
                self._closing.wait(AGAIN_S)

    def _take(self, manifest: Manifest) -> None:
        """Take a batch, and with it those that have come meanwhile, up to a number of results."""
        first = manifest.batch
        lines: list[bytes] = []
        letters: list[dict[str, Any]] = []
        while True:
            pieces = result_lines(self.state, manifest, with_data=True)
            lines += [line for piece in pieces for line in bytes(piece).splitlines()]
            letters += dead_letters(self.state, manifest)
            following = manifest.batch + 1
            if len(lines) >= MOST_LINES or not manifest_path(self.state, following).exists():
                break
            manifest = read_manifest(self.state, following)
        at_us = time.time_ns() // 1_000
        entries = self.ledger.record(manifest.batch, lines, letters, at_us, first)
        if entries is None:
            # A try that seemed to fail has some of them, perhaps not all.
            manifest = read_manifest(self.state, self.ledger.batch)
        self.batch, self.committed_seq = manifest.batch, manifest.next_seq
        self.event_us = manifest.now_us if manifest.now_us is not None else self.event_us
        # Those who listen first: if the cursor cannot be written, only sweeping waits for it.
        self.tell(manifest, entries)
        note_cursor(self.state, manifest.batch)

    def _forget(self) -> None:
        """Now and then, drop what is older than results are kept."""
        if time.monotonic() - self._forgot_s >= FORGETS_S:
            self._forgot_s = time.monotonic()
            now_us = time.time_ns() // 1_000
            before_us = now_us - self.keep_us
            self.ledger.forget_before(before_us, now_us)
            # The pipeline sees only what the ledger knows: what is committed is not read again.
            folder = journal_folder(self.state)
            if drop_files(folder, self.committed_seq, before_us / 1e6):
                self.ledger.forget_ended(list_files(folder)[0].first_seq, self.event_us)


def cursor_path(state: StateDir) -> Path:
    return state.root / "sinks" / "ledger.json"


def note_cursor(state: StateDir, batch: int) -> None:
    """Say what may be swept. It need not survive a power cut: the ledger itself knows."""
    path = cursor_path(state)
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(Cursor(batch)))
    os.replace(temporary, path)


def read_cursor(state: StateDir) -> int:
    """The last batch that the ledger has, as far as it has said so."""
    try:
        return msgspec.json.decode(cursor_path(state).read_bytes(), type=Cursor).batch
    except (OSError, msgspec.DecodeError):
        return -1
