"""A plan that somebody asks for by hand: a note in the state directory, taken up by its writer."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from placewire.model.errors import Unusable
from placewire.state.layout import StateDir, write_file
from placewire.state.manifest import read_latest
from placewire.state.mirror import read_file

NOTE = "ASKED.json"
MOST_WORKERS = 4_096


class Asked(msgspec.Struct, frozen=True):
    """A plan by name, a number of workers, and the id by which a manifest says it was taken up."""

    id: str
    plan: str = ""
    workers: int = 0

    def wish(self) -> dict[str, Any]:
        """What is wanted, as it is asked for over HTTP."""
        wanted = {"plan": self.plan, "workers": self.workers}
        return {name: value for name, value in wanted.items() if value}


def ask_plan(state: StateDir, plan: str = "", workers: int = 0) -> Asked:
    """Leave a note that a plan or a number of workers is wanted; raises Unusable.

    Of what was asked for before and nobody has taken up, the other one stays.
    """
    latest = read_latest(state)
    waiting = read_waiting(state, {} if latest is None else latest.plan)
    if waiting is not None:
        plan, workers = plan or waiting.plan, workers or waiting.workers
    asked = Asked(secrets.token_hex(8), plan, workers)
    try:
        write_file(state.root / NOTE, msgspec.json.encode(asked))
    except OSError as error:
        raise Unusable(f"state {state}: cannot be written: {error.strerror}") from None
    return asked


def read_waiting(state: StateDir, plan: dict[str, Any]) -> Asked | None:
    """What is asked for and not taken up yet, by the boolean plan of the last manifest."""
    asked = read_asked(state)
    return None if asked is None or asked.id == plan.get("asked") else asked


def read_asked(state: StateDir) -> Asked | None:
    """The note, if there is a readable one."""
    try:
        asked = msgspec.json.decode(read_file(state.root / NOTE), type=Asked)
        return asked if 0 <= asked.workers <= MOST_WORKERS else None
    except (OSError, msgspec.DecodeError, UnicodeError):
        return None
