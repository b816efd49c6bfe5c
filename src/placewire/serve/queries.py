"""Answer snapshot queries at the last commit, and look up the objects that results name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import msgspec

from placewire.objects.sections import find_latest
from placewire.queries.snapshot import Snapshot
from placewire.serve.ledger import ResultEntry
from placewire.serve.ledger.rows import read_head
from placewire.storage.journal import JournalReader, journal_folder
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest

MAX_DETAILS = 100  # ids per lookup


class SnapshotQueries:
    """Reads the latest manifest that the gateway knows. Call it in threads; it locks."""

    def __init__(self, state: StateDir, latest: Callable[[], Manifest | None]) -> None:
        self.state = state
        self.latest = latest
        self._journal = JournalReader(journal_folder(state))
        self._snapshot: Snapshot | None = None
        self._lock = threading.Lock()

    def answer(self, query: dict[str, Any], with_data: bool) -> dict[str, Any]:
        """Answer a query; raises InvalidEvent."""
        with self._lock:
            return self._open().answer(query, with_data)

    def details(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Position and text of objects by id, for the first ids that are kept.

        If several objects share an id, the latest counts.
        """
        with self._lock:
            found = find_latest(self._open().sections, islice(names, MAX_DETAILS))
        details: dict[str, dict[str, Any]] = {}
        for name, (seq, lon, lat) in found.items():
            details[name] = {"seq": seq, "lon": lon, "lat": lat}
            event = self.object_at(seq)
            if event is not None:
                details[name]["text"] = event["text"]
        return details

    def object_at(self, seq: int) -> dict[str, Any] | None:
        """The object at an event, if the journal still has it."""
        line = self._journal.read(seq)
        try:
            event = msgspec.json.decode(line) if line is not None else None
        except msgspec.DecodeError:
            return None
        return event if isinstance(event, dict) and event.get("type") == "object" else None

    def objects_of(self, entry: ResultEntry) -> dict[str, Any]:
        """Position and text of the objects that a result adds, as far as they are kept."""
        names = read_head(entry.body).new_objects
        found: dict[str, Any] = {}
        event = self.object_at(entry.seq) if names else None
        if event is not None and event["id"] in names:
            facts = {name: event[name] for name in ("lon", "lat", "text")}
            found[event["id"]] = {"seq": entry.seq, **facts}
        # Objects from before: a subscription has just started, or another one left the window.
        earlier = [name for name in names if name not in found]
        return found | (self.details(earlier) if earlier else {})

    def _open(self) -> Snapshot:
        latest = self.latest()
        if self._snapshot is None:
            self._snapshot = Snapshot(self.state.root)
        seen = self._snapshot.manifest
        if latest is not None and (seen is None or seen.batch < latest.batch):
            self._snapshot.refresh()
        return self._snapshot
