"""`placewire rebalance`: ask for another plan or other workers, and see them come into force."""

from __future__ import annotations

import time
from pathlib import Path

from placewire.cli.progress import ProgressLine
from placewire.engine.plannames import PLANS
from placewire.engine.standing import open_state
from placewire.model.errors import Unusable
from placewire.plan.methods import METHODS
from placewire.state.asking import ask_plan, read_asked
from placewire.state.manifest import read_latest

LOOK_EVERY_S = 0.1


def run_rebalance(root: Path, plan: str | None, workers: int | None, wait_s: float) -> str:
    """Leave the note, wait for it to be taken up, and say what came of it; raises Unusable."""
    if (plan is None) == (workers is None):
        raise Unusable("rebalance: give --plan or --workers, one of them")
    if plan not in (None, "shared", *METHODS):
        raise Unusable(f"plan: must be one of {', '.join([*METHODS, 'shared'])}, got {plan!r}")
    state = open_state(root)
    before = read_latest(state)
    entry = {} if before is None else before.plan
    if workers is not None and entry.get("name", "shared") not in PLANS["boolean"]:
        raise Unusable(f"workers: a saved plan has its own, {entry['workers']}, got {workers}")
    note = read_asked(state)
    waiting = "next_workers" in entry or (note is not None and note.id != entry.get("asked"))
    if workers is not None and entry.get("workers") == workers and not waiting:
        return f"there are {workers} workers already; nothing is asked for"
    asked = ask_plan(state, plan or "", workers or 0)
    what = f"plan {plan}" if plan else f"a run with {workers} workers"
    ends = time.monotonic() + wait_s
    with ProgressLine("rebalance", max(int(wait_s), 1)) as progress:
        while time.monotonic() < ends:
            latest = read_latest(state)
            entry = {} if latest is None else latest.plan
            taken = entry.get("asked") == asked.id and "next_why" not in entry
            if workers is not None:
                taken = taken and entry.get("workers") == workers
            if latest is not None and taken:
                return f"{what} is in force, batch {latest.batch}"
            progress.update(int(wait_s - (ends - time.monotonic())), "waiting for two commits")
            time.sleep(LOOK_EVERY_S)
    return f"{what} is asked for; it comes into force two batches after the state runs on"
