"""`placewire rebalance`: ask for another plan or other workers, and see them come into force."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from placewire.cli.outcome import Outcome
from placewire.cli.progress import ProgressLine
from placewire.cli.targets import Target, open_client
from placewire.model.errors import Unusable
from placewire.plans.boolean.methods import METHODS
from placewire.plans.names import PLANS
from placewire.status.status import open_state
from placewire.storage.manifest import read_latest
from placewire.storage.notes import ask_plan, read_asked

LOOK_EVERY_S = 0.1
THERE, IN_FORCE, ASKED = "there already", "in force", "asked for"


def run_rebalance(target: Target, plan: str | None, workers: int | None, wait_s: float) -> Outcome:
    """Ask for it, wait for it to be taken up, and say what came of it; raises Unusable."""
    if (plan is None) == (workers is None):
        raise Unusable("rebalance: give --plan or --workers, one of them")
    if plan not in (None, "shared", *METHODS):
        raise Unusable(f"plan: must be one of {', '.join([*METHODS, 'shared'])}, got {plan!r}")
    what = f"plan {plan}" if plan else f"a run with {workers} worker{'s' if workers != 1 else ''}"
    asked = {"plan": plan} if plan else {"workers": workers}
    if target.state is not None:
        said, batch = ask_state(target.state, plan, workers, wait_s)
    else:
        said, batch = ask_server(target, plan, workers, wait_s)
    if said == THERE:
        line = f"there are {workers} workers already; nothing is asked for"
    elif said == IN_FORCE:
        line = f"{what} is in force, batch {batch}"
    else:
        line = (
            f"{what} is asked for; it comes into force two batches after the state runs on,"
            " which needs events to come; `placewire status` shows what waits"
        )
    return Outcome(line, {"asked": asked, "outcome": said, "batch": batch})


def ask_state(
    root: Path, plan: str | None, workers: int | None, wait_s: float
) -> tuple[str, int | None]:
    """Leave the note in a state and wait; gives what came of it, and the batch it began with."""
    state = open_state(root)
    before = read_latest(state)
    entry = {} if before is None else before.plan
    if workers is not None and entry.get("name", "shared") not in PLANS["boolean"]:
        raise Unusable(f"workers: a saved plan has its own, {entry['workers']}, got {workers}")
    note = read_asked(state)
    waiting = "next_workers" in entry or (note is not None and note.id != entry.get("asked"))
    if workers is not None and entry.get("workers") == workers and not waiting:
        return THERE, None
    asked = ask_plan(state, plan or "", workers or 0)

    def taken() -> int | None:
        latest = read_latest(state)
        entry = {} if latest is None else latest.plan
        done = entry.get("asked") == asked.id and "next_why" not in entry
        if workers is not None:
            done = done and entry.get("workers") == workers
        return latest.batch if latest is not None and done else None

    return wait_for(taken, wait_s)


def ask_server(
    target: Target, plan: str | None, workers: int | None, wait_s: float
) -> tuple[str, int | None]:
    """The same of a server."""
    with open_client(target) as client:
        before = client.plan()
        if workers is not None and before["workers"] == workers:
            return THERE, None
        client.ask_plan(plan or "", workers or 0)

        def taken() -> int | None:
            now = client.plan()
            done = now["workers"] == workers if plan is None else now["name"] == plan
            done = done and (now["version"] != before["version"] or plan is None)
            return int(client.status(0)["batch"]) if done else None

        return wait_for(taken, wait_s)


def wait_for(taken: Callable[[], int | None], wait_s: float) -> tuple[str, int | None]:
    """Wait until it is taken up: what came of it, and since which batch."""
    ends = time.monotonic() + wait_s
    with ProgressLine("rebalance", max(int(wait_s), 1)) as progress:
        while time.monotonic() < ends:
            batch = taken()
            if batch is not None:
                return IN_FORCE, batch
            progress.update(int(wait_s - (ends - time.monotonic())), "waiting for two commits")
            time.sleep(LOOK_EVERY_S)
    return ASKED, None
