"""Sweeping: files that no manifest needs any more are deleted."""

from __future__ import annotations

import re
from collections.abc import Callable

from placewire.storage.layout import StateDir
from placewire.storage.manifest import committed_batches, manifest_path, read_manifest
from placewire.storage.mirror import list_names, remove_file

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
    there = list_names(state.files)
    needed = set(spared())  # asked after the directory was read: a merge writes beside us
    for batch in kept:
        needed |= read_manifest(state, batch).file_names()
    for batch in set(batches) - set(kept):
        remove_file(manifest_path(state, batch))
    gone = 0
    for name in there:
        own = OWN_NAME.match(name)
        if own and name not in needed and int(own.group(1)) <= batches[-1]:
            remove_file(state.file(name))
            gone += 1
    return gone
