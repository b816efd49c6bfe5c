"""Sections of retained objects."""

from __future__ import annotations

from placewire.objects.index import Retained
from placewire.objects.sections import Section, make_section
from placewire.objects.store import describe


def section_of(retained: Retained) -> Section:
    return make_section(retained, describe("", retained))
