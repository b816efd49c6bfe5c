"""The latest of the retained objects by their ids, for lists that name objects by id alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from placewire.engine.ground import rows_of_id
from placewire.engine.sections import Section


class Latest(NamedTuple):
    """Where an object is in the log, and on earth."""

    seq: int
    lon: float
    lat: float


def find_latest(sections: Sequence[Section], names: Iterable[str]) -> dict[str, Latest]:
    """The latest object of each id, of those that are retained."""
    wanted = set(names)
    found: dict[str, Latest] = {}
    for section in sorted(sections, key=lambda one: -one.last_seq):
        kept = section.retained
        for name in wanted:
            if name in found and found[name].seq >= section.last_seq:
                continue
            rows = rows_of_id(kept.id_offsets, kept.id_bytes, name)
            if rows.size == 0:
                continue
            row = int(rows[kept.seq[rows].argmax()])
            seq = int(kept.seq[row])
            if name not in found or found[name].seq < seq:
                found[name] = Latest(seq, float(kept.lon[row]), float(kept.lat[row]))
    return found
