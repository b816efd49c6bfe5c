"""Measure how far a run lags behind its sources, from the progress of each trigger.

Spark reports the latest offset of a topic and the end offset of the trigger; for a Delta table
these are versions. It reports nothing for a folder: the source log lists the files that were read
in order of time, so newer files are waiting.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from placewire.spark.config import SourceConfig
from placewire.storage.filesystem import without_secrets
from placewire.storage.runtime_files import Lag, SourceLag


class TakenFiles(NamedTuple):
    """The modification time of the newest files that were read, and their names."""

    newest_ms: int
    names: frozenset[str]


NO_FILES_TAKEN = TakenFiles(-1, frozenset())


class LagMeter:
    """Measures the lag of the sources of one run, in the order of its query."""

    def __init__(self, sources: Sequence[SourceConfig], checkpoint: Path) -> None:
        self.sources = list(sources)
        self.checkpoint = checkpoint
        self.taken = [NO_FILES_TAKEN] * len(self.sources)

    def measure(self, progress: Mapping[str, Any], sinks: dict[str, int]) -> Lag:
        """Measure the lag after a trigger; `sinks` are the batches that each sink lacks."""
        sources_progress = progress["sources"]
        if len(sources_progress) != len(self.sources):
            sources_progress = [{}] * len(self.sources)
        sources = [
            self._measure(number, source, one)
            for number, (source, one) in enumerate(zip(self.sources, sources_progress, strict=True))
        ]
        at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return Lag(at, sources, sinks)

    def _measure(self, number: int, source: SourceConfig, progress: Mapping[str, Any]) -> SourceLag:
        if source.format == "kafka":
            waiting = count_waiting_messages(
                progress.get("latestOffset"), progress.get("endOffset")
            )
            name = f"kafka {source.topic}"
            if waiting is None:
                return SourceLag(name)
            return SourceLag(name, messages=sum(waiting.values()), partitions=waiting)
        name = f"{source.format} {without_secrets(str(source.path))}"
        if source.format == "delta":
            files, versions = count_waiting_versions(
                progress.get("latestOffset"), progress.get("endOffset")
            )
            return SourceLag(name, files=files, versions=versions)
        taken = self.taken[number] = self._read_taken(number, progress.get("endOffset"))
        when = None
        if taken.newest_ms >= 0:
            at = datetime.fromtimestamp(taken.newest_ms / 1000, UTC)
            when = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        found = count_waiting_files(str(source.path), taken)
        if found is None:
            return SourceLag(name, taken=when)
        return SourceLag(name, files=found[0], bytes=found[1], taken=when)

    def _read_taken(self, number: int, end: Any) -> TakenFiles:
        """Read the newest files of a folder from its source log."""
        last = self.taken[number]
        offset = decode_offset(end)
        if not isinstance(offset, dict) or "logOffset" not in offset:
            return last
        log = self.checkpoint / "sources" / str(number)
        for name in (f"{offset['logOffset']}", f"{offset['logOffset']}.compact"):
            try:
                lines = (log / name).read_text().splitlines()[1:]
            except OSError:
                continue
            entries = [json.loads(line) for line in lines]
            newest = max((entry["timestamp"] for entry in entries), default=-1)
            if newest < last.newest_ms:
                return last
            names = {Path(e["path"]).name for e in entries if e["timestamp"] == newest}
            return TakenFiles(
                newest, frozenset(names | (last.names if newest == last.newest_ms else set()))
            )
        return last


def count_waiting_messages(latest: Any, end: Any) -> dict[str, int] | None:
    """Count messages up to the latest offset, by `TOPIC-PARTITION`; None if it is unknown."""
    newest, done = decode_offset(latest), decode_offset(end)
    if not isinstance(newest, dict) or not isinstance(done, dict):
        return None
    return {
        f"{topic}-{partition}": max(0, offset - done.get(topic, {}).get(partition, 0))
        for topic, partitions in sorted(newest.items())
        for partition, offset in sorted(partitions.items(), key=lambda one: int(one[0]))
    }


def count_waiting_versions(latest: Any, end: Any) -> tuple[int | None, int | None]:
    """Count the remaining files of a table's version, and the versions after it."""
    newest, done = decode_offset(latest), decode_offset(end)
    if not isinstance(newest, dict) or not isinstance(done, dict):
        return None, None
    return done["of"] - done["files"], max(0, newest["version"] - done["version"])


def count_waiting_files(path: str, taken: TakenFiles) -> tuple[int, int] | None:
    """Count files of a local folder, and their bytes, that are newer than those read."""
    if "://" in path or not os.path.isdir(path):
        return None
    files = size = 0
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        for name in names:
            if name.startswith(("_", ".")):
                continue
            try:
                found = os.stat(os.path.join(folder, name))
            except OSError:
                continue
            changed_ms = found.st_mtime_ns // 1_000_000
            alike = changed_ms == taken.newest_ms and name not in taken.names
            if changed_ms > taken.newest_ms or alike:
                files, size = files + 1, size + found.st_size
    return files, size


def decode_offset(offset: Any) -> Any:
    """Decode an offset of a progress report: a JSON string, or null."""
    try:
        return json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:
        return None
