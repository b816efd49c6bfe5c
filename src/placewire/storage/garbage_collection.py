"""Garbage collection: delete manifests and files that no kept manifest needs."""

from __future__ import annotations

import re
from collections.abc import Callable

from placewire.storage.layout import StateDir
from placewire.storage.manifest import committed_batches, manifest_path, read_manifest
from placewire.storage.mirror import list_names, remove_file

KEEP_MANIFESTS = 3
BATCH_FILE = re.compile(r"b(\d{9})-.*\.plw$")


def collect_garbage(state: StateDir, delivered: int, spared: Callable[[], set[str]]) -> int:
    """Delete files that only batches up to `delivered` needed; returns how many.

    The newest manifests are kept, so that a reader that has just read one finds its files. So are
    files of batches that are not committed yet, and those that `spared` names: a compaction may be
    writing them.
    """
    batches = committed_batches(state)
    if not batches:
        return 0
    kept = [b for b in batches if b > delivered or b in batches[-KEEP_MANIFESTS:]]
    there = list_names(state.files)
    needed = set(spared())  # read after listing: a compaction writes concurrently
    for batch in kept:
        needed |= read_manifest(state, batch).file_names()
    for batch in set(batches) - set(kept):
        remove_file(manifest_path(state, batch))
    gone = 0
    for name in there:
        own = BATCH_FILE.match(name)
        if own and name not in needed and int(own.group(1)) <= batches[-1]:
            remove_file(state.file(name))
            gone += 1
    return gone
