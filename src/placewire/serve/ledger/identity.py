"""Binding: whether a ledger belongs to a state, and how both go on if it has lost something.

Results are numbered once, when their batch is recorded; batches that are recorded may be swept.
So a ledger that knows less than the state has swept cannot be made whole again from it.
"""

from __future__ import annotations

import secrets

from placewire.model.errors import Unusable
from placewire.serve.ledger import Ledger
from placewire.state.journal import journal_folder, read_id
from placewire.state.layout import StateDir, write_file
from placewire.state.manifest import committed_batches, read_latest

NUMBER_DIGITS = 15  # of a journal's id, in hexadecimal: as much as a number of the ledger holds
WAY_OUT = (
    "give it the ledger that it had, or go on without what that knew by `placewire serve"
    " --renew-ledger`: see `docs/service.md`, A ledger that is lost"
)

MARKER = "LEDGER"  # in the state: the number of the ledger that it has had
NUMBER_BITS = 60


def has_ledger(state: StateDir) -> bool:
    """Whether the state has had a ledger, which may be lost."""
    return (state.root / MARKER).exists()


def is_own(ledger: Ledger, state: StateDir) -> bool:
    """Whether a ledger is the one that the state has had, or it has had none; raises Unusable."""
    try:
        noted = (state.root / MARKER).read_text().strip()
    except FileNotFoundError:
        return True
    except OSError as error:
        raise Unusable(f"state {state.root}: cannot be read: {error.strerror}") from None
    return noted == f"{ledger.meta('ledger', 0):x}"


def refuse_other(ledger: Ledger, state: StateDir) -> None:
    """Raises Unusable for a ledger that is not the one that the state has had."""
    if not is_own(ledger, state):
        raise Unusable(lost(state))


def lost(state: StateDir) -> str:
    """Why a ledger that lacks what only the state's own knew is not taken."""
    return (
        f"ledger: is not there, or not the one that state {state.root} has had, which alone knew"
        f" its keys and webhooks: {WAY_OUT}"
    )


def adopt(ledger: Ledger, state: StateDir) -> None:
    """Note in the state that this is its ledger."""
    if has_ledger(state) and is_own(ledger, state):
        return
    number = ledger.number_itself(secrets.randbits(NUMBER_BITS) | 1)
    try:
        write_file(state.root / MARKER, f"{number:x}\n".encode())
    except OSError as error:
        raise Unusable(f"state {state.root}: cannot be written: {error.strerror}") from None


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
    own = is_own(ledger, state)
    whole = not known or known[0] - 1 <= batch <= known[-1]
    if not renew and not whole:
        raise Unusable(
            f"ledger: has results up to batch {batch}, and state {state.root} keeps those from"
            f" batch {known[0]} to {known[-1]}: {WAY_OUT}"
        )
    if not renew:
        refuse_other(ledger, state)
    adopt(ledger, state)
    if own and whole:
        return ""
    if not known:
        return "the ledger begins anew; what the one before knew alone is gone: keys, webhooks"
    latest = read_latest(state)
    least = latest.counters.results if latest is not None else 0
    last = batch if whole else known[0] - 1
    ledger.begin_again(last, least)
    return (
        f"the ledger begins again with batch {last + 1}; results are numbered from {least + 1:,}"
        " on, and what the ledger knew alone is gone: older results, keys, webhooks"
    )
