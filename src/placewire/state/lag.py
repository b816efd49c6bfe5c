"""Lag: how far a run is behind its sources, and its sinks behind it; a note in the state.

It is for people and for metrics. Nothing depends on it, and it may be older than the last commit.
"""

from __future__ import annotations

import contextlib

import msgspec

from placewire.state.layout import StateDir, write_file
from placewire.state.mirror import read_file
from placewire.state.place import Unreachable

NOTE = "LAG.json"


class SourceLag(msgspec.Struct, frozen=True, omit_defaults=True):
    """What waits in one source: messages of a topic, also by partition, or files.

    `versions` are those of a table after the one whose files are told. `taken` is the time of the
    newest file that was taken. What a source does not tell is None.
    """

    source: str
    messages: int | None = None
    partitions: dict[str, int] = {}
    files: int | None = None
    bytes: int | None = None
    versions: int | None = None
    taken: str | None = None


class Lag(msgspec.Struct, frozen=True):
    """All sources, and how many committed batches each sink lacks, at one time."""

    at: str
    sources: list[SourceLag]
    sinks: dict[str, int] = {}


def note_lag(state: StateDir, lag: Lag) -> None:
    """Leave the note; a disk that is full or a store that is away is told of elsewhere."""
    with contextlib.suppress(OSError, Unreachable):
        write_file(state.root / NOTE, msgspec.json.encode(lag))


def read_lag(state: StateDir) -> Lag | None:
    """The note, if there is a readable one."""
    try:
        return msgspec.json.decode(read_file(state.root / NOTE), type=Lag)
    except (OSError, msgspec.DecodeError, UnicodeError):
        return None
