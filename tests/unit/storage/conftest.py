"""A new state directory for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from placewire.storage.layout import StateDir


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    made = StateDir(tmp_path / "state")
    made.open()
    return made
