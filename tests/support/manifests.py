"""Manifests for tests of state directories."""

from __future__ import annotations

from typing import Any

from placewire.model.settings import Settings
from placewire.storage.manifest import (
    BlockEntry,
    Manifest,
    Offset,
)

# --- manifests ---


def make_manifest(batch: int, *files: str, **more: Any) -> Manifest:
    fields: dict[str, Any] = {
        "batch": batch,
        "epoch": 1,
        "key": (2**64 - 1, 1),
        "settings": Settings(),
        "source": "x",
        "offset": Offset(1, 2),
        "next_seq": 1,
        "now_us": None,
        "blocks": [BlockEntry(file, 0, 0) for file in files],
    }
    return Manifest(**{**fields, **more})
