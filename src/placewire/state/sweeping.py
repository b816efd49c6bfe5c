"""Sweeping: files that no manifest needs any more are deleted."""

from __future__ import annotations

import re
from collections.abc import Callable

from placewire.state.layout import StateDir
from placewire.state.manifest import committed_batches, manifest_path, read_manifest

KEEP_MANIFESTS = 3
OWN_NAME = re.compile(r"b(\d{9})-.*\.plw$")


def sweep(state: StateDir, delivered: int, spared: Callable[[], set[str]]) -> int:
    """Delete what only batches up to `delivered` needed; gives how many files went.

    The newest manifests stay, so that a reader who has just read one finds its files, and so do
    files written by batches that are not committed yet: a merge may be under way.
    """
    batches = committed_batches(state)
    if not batches:
        return 0
    kept = [b for b in batches if b > delivered or b in batches[-KEEP_MANIFESTS:]]
    there = list(state.files.iterdir())
    needed = set(spared())  # asked after the directory was read: a merge writes beside us
    for batch in kept:
        needed |= read_manifest(state, batch).file_names()
    for batch in set(batches) - set(kept):
        manifest_path(state, batch).unlink(missing_ok=True)
    gone = 0
    for path in there:
        name = OWN_NAME.match(path.name)
        if name and path.name not in needed and int(name.group(1)) <= batches[-1]:
            path.unlink(missing_ok=True)
            gone += 1
    return gone
