"""Deliver committed batches to sinks in order; each sink has its own cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec
import pyarrow as pa

from placewire.model.errors import Unusable
from placewire.sinks.outbox import (
    dead_letter_lines,
    dead_letters,
    dead_table,
    result_lines,
    result_table,
)
from placewire.storage.layout import StateDir, write_file
from placewire.storage.manifest import Manifest, committed_batches, read_manifest
from placewire.storage.mirror import read_file

SINKS = "sinks"  # the folder of cursors


class Delivered:
    """The results or dead letters of a committed batch, as a table or as lines."""

    def __init__(self, state: StateDir, manifest: Manifest, with_data: bool, dead: bool) -> None:
        self.state = state
        self.manifest = manifest
        self.with_data = with_data
        self.dead = dead

    @property
    def batch(self) -> int:
        return self.manifest.batch

    @cached_property
    def table(self) -> pa.Table:
        """Typed columns, each result with its `id`."""
        if self.dead:
            return dead_table(dead_letters(self.state, self.manifest))
        return result_table(self.state, self.manifest, self.with_data)

    def lines(self) -> Iterator[memoryview]:
        """Yield JSON Lines in result order, in chunks of whole lines."""
        if self.dead:
            yield memoryview(dead_letter_lines(self.state, self.manifest))
        else:
            yield from result_lines(self.state, self.manifest, self.with_data)


class Sink(Protocol):
    """A destination of results or dead letters.

    After a crash a batch may be delivered again, with the same number and the same rows: a sink
    that writes by that number has them exactly once.
    """

    name: str
    dead: bool  # whether it takes dead letters rather than results

    def write(self, delivered: Delivered) -> None: ...


@runtime_checkable
class OwnedSink(Sink, Protocol):
    """A sink whose destination belongs to one state."""

    def check(self, key: tuple[int, int]) -> None:
        """Raise Unusable if the destination belongs to another state; change nothing."""

    def claim(self, key: tuple[int, int]) -> None:
        """Claim the destination for the state with this key; raises Unusable."""


class SinkCursor(msgspec.Struct, frozen=True):
    """The last batch delivered to a sink."""

    batch: int = -1


class Delivery:
    """Delivers batches to all sinks up to a commit."""

    def __init__(self, state: StateDir, sinks: Sequence[Sink], with_data: bool) -> None:
        self.state = state
        self.sinks = list(sinks)
        self.with_data = with_data
        self.folder = state.root / SINKS
        self.folder.mkdir(exist_ok=True)
        names = [sink.name for sink in sinks]
        for name in names:
            if names.count(name) > 1:
                raise Unusable(f"sinks: two are named {name!r}")
        oldest = min(committed_batches(state), default=0)
        self.cursors = {name: self._open_cursor(name, oldest) for name in names}

    @property
    def delivered(self) -> int:
        """The last batch delivered to every sink."""
        return min((cursor.batch for cursor in self.cursors.values()), default=1 << 62)

    def lacking(self, batch: int) -> dict[str, int]:
        """Return the number of undelivered batches up to this one, by sink."""
        return {name: max(0, batch - cursor.batch) for name, cursor in self.cursors.items()}

    def deliver(self, latest: Manifest) -> None:
        """Deliver missing batches to every sink; to none if one belongs to another state."""
        self._claim(latest)
        for sink in self.sinks:
            for batch in range(self.cursors[sink.name].batch + 1, latest.batch + 1):
                manifest = latest if batch == latest.batch else read_manifest(self.state, batch)
                if has_any(manifest, sink.dead):
                    sink.write(Delivered(self.state, manifest, self.with_data, sink.dead))
                self.cursors[sink.name] = SinkCursor(batch)
                write_file(self._cursor_path(sink.name), msgspec.json.encode(SinkCursor(batch)))

    def _claim(self, latest: Manifest) -> None:
        """Claim all sinks or none; raises Unusable. A state without a commit has no key yet."""
        owned = [sink for sink in self.sinks if isinstance(sink, OwnedSink)]
        for sink in owned:
            sink.check(latest.key)
        if latest.batch >= 0:
            for sink in owned:
                sink.claim(latest.key)

    def _open_cursor(self, name: str, oldest: int) -> SinkCursor:
        """Open a sink's cursor; a new one starts at the oldest batch of the state."""
        cursor = read_cursor(self.state, name)
        if cursor is None:
            return SinkCursor(oldest - 1)
        if cursor.batch + 1 < oldest:
            raise Unusable(
                f"sink {name}: lacks batches {cursor.batch + 1} to {oldest - 1}, which the state"
                " no longer has; rename the sink to continue without them"
            )
        return cursor

    def _cursor_path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def read_cursor(state: StateDir, name: str) -> SinkCursor | None:
    """Read a sink's cursor; None if it has none yet. Raises Unusable."""
    path = state.root / SINKS / f"{name}.json"
    try:
        return msgspec.json.decode(read_file(path), type=SinkCursor)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise Unusable(f"state {state}: {SINKS}/{path.name} is damaged: {error}") from None


def has_any(manifest: Manifest, dead: bool) -> bool:
    """Return whether a batch has results, or dead letters."""
    if dead:
        return manifest.late_dead is not None or any(block.dead for block in manifest.blocks)
    others = (manifest.updates, manifest.answers, manifest.reports)
    return bool(manifest.pieces) or any(entry is not None for entry in others)
