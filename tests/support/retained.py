"""Sections of retained objects."""

from __future__ import annotations

from placewire.kernels.jit import read_only
from placewire.objects.index import (
    Retained,
)
from placewire.objects.sections import Section, part_rows


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
