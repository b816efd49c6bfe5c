"""Results that a batch wrote as lines, reports and answers: those of a few names, read again."""

from __future__ import annotations

from typing import Any

import msgspec

from placewire.engine.outbox import ready_lines
from placewire.state.arrays import open_arrays
from placewire.state.layout import StateDir
from placewire.state.manifest import LinesEntry


class Named(msgspec.Struct):
    """Whose result a line is; the rest of it is not looked at."""

    subscription: str = ""
    query: str = ""


def results_named(
    state: StateDir, entry: LinesEntry | None, names: set[str]
) -> list[dict[str, Any]]:
    """The results of these subscriptions and queries, in order."""
    if entry is None:
        return []
    lines = ready_lines(open_arrays(state.file(entry.file)).arrays, with_data=False)
    decoder = msgspec.json.Decoder(Named)
    found = []
    for line in lines.text.tobytes().splitlines():
        named = decoder.decode(line)
        if named.subscription in names or named.query in names:
            found.append(msgspec.json.decode(line))
    return found
