"""Sections of retained objects."""

from __future__ import annotations

from placewire.engine.sections import Section, part_rows
from placewire.index.retained import (
    Retained,
)
from placewire.kernels.jit import read_only


def section_of(retained: Retained) -> Section:
    retained = Retained(*map(read_only, retained))
    return Section(
        retained,
        part_rows(retained),
        int(retained.seq.min()),
        int(retained.seq.max()),
        int(retained.ts_us.min()),
        int(retained.ts_us.max()),
    )
