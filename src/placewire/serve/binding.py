"""Binding: whether a ledger belongs to a state, and how both go on if it has lost something.

Results are numbered once, when their batch is recorded; batches that are recorded may be swept.
So a ledger that knows less than the state has swept cannot be made whole again from it.
"""

from __future__ import annotations

from placewire.model.errors import Unusable
from placewire.serve.ledger import Ledger
from placewire.state.journal import journal_folder, read_id
from placewire.state.layout import StateDir
from placewire.state.manifest import committed_batches, read_latest

NUMBER_DIGITS = 15  # of a journal's id, in hexadecimal: as much as a number of the ledger holds
WAY_OUT = (
    "give it the ledger that it had, or go on without what that knew by `placewire serve"
    " --renew-ledger`: see `docs/service.md`, A ledger that is lost"
)


def bind(ledger: Ledger, state: StateDir, next_seq: int, renew: bool = False) -> str:
    """See that a ledger belongs to a state whose journal goes up to `next_seq`.

    With `renew` one that lacks results goes on without them: gives what was done, in a line.
    Raises Unusable.
    """
    ours = int(read_id(journal_folder(state))[:NUMBER_DIGITS], 16)
    if ledger.meta("journal", ours) != ours:
        raise Unusable(
            f"ledger: belongs to another state than {state.root}; a state has a ledger of its own"
        )
    ledger.note_journal(ours)
    known = committed_batches(state) if state.manifests.exists() else []
    batch, applied = ledger.batch, ledger.applied_seq
    if applied > next_seq:
        raise Unusable(
            f"ledger: knows events up to {applied}, and the journal of state {state.root} has"
            f" {next_seq}: the state is an older copy, give it the ledger that was copied with it"
        )
    if not known or known[0] - 1 <= batch <= known[-1]:
        return ""
    kept = f"those from batch {known[0]} to {known[-1]}"
    if not renew:
        raise Unusable(
            f"ledger: has results up to batch {batch}, and state {state.root} keeps {kept}:"
            f" {WAY_OUT}"
        )
    latest = read_latest(state)
    least = latest.counters.results if latest is not None else 0
    ledger.begin_again(known[0] - 1, least)
    return (
        f"the ledger begins again with batch {known[0]}; results are numbered from {least + 1:,}"
        " on, and what the ledger knew alone is gone: older results, keys, webhooks"
    )
