"""Spells: what an id was before it was replaced or taken by another owner.

They are kept as long as the journal is, so that what came of an object can be told afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from placewire.serve.ledger.database import Cursor
from placewire.serve.ledger.meta import SET_META, get_meta
from placewire.serve.ledger.rows import Change, Held

SINCE = "spells"  # the first event from which on none is missing
ADD_SPELL = (
    "INSERT INTO spell (id, seq, owner, end_seq, how, body) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id, seq) DO NOTHING"
)


class Past(NamedTuple):
    """A subscription from its event on: at `end_seq`, if it is over, it was ended or replaced.

    One that had expired is over when another owner takes the id.
    """

    seq: int
    owner: str
    end_seq: int | None
    how: str
    body: str


def keep_spell(cursor: Cursor, held: Held, change: Change) -> None:
    """Note what an id was, which a change makes something else."""
    past = close_spell(held, change.seq, change.owner)
    cursor.execute(ADD_SPELL, (held.id, *past))


def close_spell(held: Held, next_seq: int, next_owner: str) -> Past:
    """A subscription after which there was another one."""
    if held.ended_seq is not None:
        return Past(held.seq, held.owner, held.ended_seq, "ended", held.body)
    how = "replaced" if held.owner == next_owner else "expired"
    return Past(held.seq, held.owner, next_seq, how, held.body)


def order_spells(kept: Iterable[Past], rows: Sequence[Held]) -> list[Past]:
    """All that an id was in order, from what was kept and from those who have or had it."""
    found = {past.seq: past for past in kept}
    latest = max(rows, key=lambda held: held.seq)
    for held in rows:
        if held.seq not in found and held is not latest:
            found[held.seq] = close_spell(held, latest.owned_seq, latest.owner)
    how = "" if latest.ended_seq is None else "ended"
    found[latest.seq] = Past(latest.seq, latest.owner, latest.ended_seq, how, latest.body)
    return [found[seq] for seq in sorted(found)]


def forget_spells(cursor: Cursor, seq: int) -> None:
    """Drop those that were over before an event."""
    cursor.execute("DELETE FROM spell WHERE end_seq < ?", (seq,))
    cursor.execute(SET_META, (SINCE, max(seq, get_meta(cursor, SINCE, 0))))
