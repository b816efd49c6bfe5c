"""Record committed results from the outbox in the ledger, then publish them.

The recorder keeps its cursor in the state directory like any sink: batches that it has not recorded
are not deleted.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from placewire.model.errors import one_line
from placewire.serve.ledger import Ledger, ResultEntry
from placewire.sinks.delivery import SinkCursor
from placewire.sinks.outbox import dead_letters, result_lines
from placewire.storage.journal import drop_files, journal_folder, list_files
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, manifest_path, read_manifest

POLL_S = 0.01
MAX_LINES = 5_000  # per transaction
RETRY_S = 1.0
PURGE_S = 600.0

OnRecorded = Callable[[Manifest, list[ResultEntry] | None], None]


class ResultRecorder:
    """Follows the manifests of a state directory in a thread."""

    def __init__(
        self, state: StateDir, ledger: Ledger, on_recorded: OnRecorded, keep_us: int
    ) -> None:
        self.state = state
        self.ledger = ledger
        self.on_recorded = on_recorded
        self.keep_us = keep_us
        self.failed = ""
        self.batch = ledger.batch
        self._closing = threading.Event()
        self._purged_s = 0.0
        self.committed_seq = 0
        self.event_us = -(1 << 62)
        self._thread = threading.Thread(target=self._follow, name="recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._closing.is_set():
            try:
                if manifest_path(self.state, self.batch + 1).exists():
                    self._record(read_manifest(self.state, self.batch + 1))
                else:
                    self._closing.wait(POLL_S)
                    self._purge()
                self.failed = ""
            except Exception as error:
                # Nothing is lost on any error: the cursor does not move.
                self.failed = one_line(error)
                self._closing.wait(RETRY_S)

    def _record(self, manifest: Manifest) -> None:
        """Record a batch together with later ones that are ready, up to a number of results."""
        first = manifest.batch
        lines: list[bytes] = []
        letters: list[dict[str, Any]] = []
        while True:
            pieces = result_lines(self.state, manifest, with_data=True)
            lines += [line for piece in pieces for line in bytes(piece).splitlines()]
            letters += dead_letters(self.state, manifest)
            following = manifest.batch + 1
            if len(lines) >= MAX_LINES or not manifest_path(self.state, following).exists():
                break
            manifest = read_manifest(self.state, following)
        at_us = time.time_ns() // 1_000
        entries = self.ledger.record(manifest.batch, lines, letters, at_us, first)
        if entries is None:
            # An attempt that seemed to fail recorded some of them, maybe not all.
            manifest = read_manifest(self.state, self.ledger.batch)
        self.batch, self.committed_seq = manifest.batch, manifest.next_seq
        self.event_us = manifest.now_us if manifest.now_us is not None else self.event_us
        # Publish first: if the cursor cannot be written, only deletion waits.
        self.on_recorded(manifest, entries)
        write_cursor(self.state, manifest.batch)

    def _purge(self) -> None:
        """Periodically delete what is older than the retention time."""
        if time.monotonic() - self._purged_s >= PURGE_S:
            self._purged_s = time.monotonic()
            now_us = time.time_ns() // 1_000
            before_us = now_us - self.keep_us
            self.ledger.purge_before(before_us, now_us)
            # The pipeline never reads committed events again.
            folder = journal_folder(self.state)
            if drop_files(folder, self.committed_seq, before_us / 1e6):
                self.ledger.purge_ended(list_files(folder)[0].first_seq, self.event_us)


def cursor_path(state: StateDir) -> Path:
    return state.root / "sinks" / "ledger.json"


def write_cursor(state: StateDir, batch: int) -> None:
    """Say which batches may be deleted. It need not be durable: the ledger is."""
    path = cursor_path(state)
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(SinkCursor(batch)))
    os.replace(temporary, path)


def read_cursor(state: StateDir) -> int:
    """The last batch that the cursor file says is recorded."""
    try:
        return msgspec.json.decode(cursor_path(state).read_bytes(), type=SinkCursor).batch
    except (OSError, msgspec.DecodeError):
        return -1
