"""`placewire rebalance`: request another plan or number of workers and wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from placewire.cli.connection import CommandTarget, open_client
from placewire.cli.output import CommandSummary, ProgressLine
from placewire.model.errors import Unusable
from placewire.plans.boolean.methods import METHODS
from placewire.plans.names import PLANS
from placewire.status import open_state
from placewire.storage.manifest import LeafPlanEntry, read_latest
from placewire.storage.runtime_files import read_request, request_plan

POLL_EVERY_S = 0.1
UNCHANGED, IN_FORCE, REQUESTED = "there already", "in force", "asked for"


def run_rebalance(
    target: CommandTarget, plan: str | None, workers: int | None, wait_s: float
) -> CommandSummary:
    """Request a plan or workers, wait until they are in force, and summarize; raises Unusable."""
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
    if said == UNCHANGED:
        line = f"there are {workers} workers already; nothing is requested"
    elif said == IN_FORCE:
        line = f"{what} is in force, batch {batch}"
    else:
        line = (
            f"{what} is requested; it takes effect two batches after the state runs on,"
            " which needs new events; `placewire status` shows pending requests"
        )
    return CommandSummary(line, {"asked": asked, "outcome": said, "batch": batch})


def ask_state(
    root: Path, plan: str | None, workers: int | None, wait_s: float
) -> tuple[str, int | None]:
    """Leave the request in a state and wait; return the outcome and its first batch."""
    state = open_state(root)
    before = read_latest(state)
    entry = LeafPlanEntry() if before is None else before.leaf_plan
    if workers is not None and entry.name and entry.name not in PLANS["boolean"]:
        raise Unusable(f"workers: a saved plan has its own, {entry.workers}, got {workers}")
    note = read_request(state)
    resizes = entry.next is not None and entry.next.workers is not None
    waiting = resizes or (note is not None and note.id != entry.asked)
    if workers is not None and entry.workers == workers and not waiting:
        return UNCHANGED, None
    asked = request_plan(state, plan or "", workers or 0)

    def first_batch() -> int | None:
        latest = read_latest(state)
        if latest is None:
            return None
        entry = latest.leaf_plan
        done = entry.asked == asked.id and entry.next is None
        if workers is not None:
            done = done and entry.workers == workers
        return latest.batch if done else None

    return poll(first_batch, wait_s)


def ask_server(
    target: CommandTarget, plan: str | None, workers: int | None, wait_s: float
) -> tuple[str, int | None]:
    """Send the request to a server and wait; return the outcome and its first batch."""
    with open_client(target) as client:
        before = client.plan()
        if workers is not None and before["workers"] == workers:
            return UNCHANGED, None
        client.ask_plan(plan or "", workers or 0)

        def first_batch() -> int | None:
            now = client.plan()
            done = now["workers"] == workers if plan is None else now["name"] == plan
            done = done and (now["version"] != before["version"] or plan is None)
            return int(client.status(0)["batch"]) if done else None

        return poll(first_batch, wait_s)


def poll(first_batch: Callable[[], int | None], wait_s: float) -> tuple[str, int | None]:
    """Poll until `first_batch` returns a batch; return the outcome and that batch."""
    ends = time.monotonic() + wait_s
    with ProgressLine("rebalance", max(int(wait_s), 1)) as progress:
        while time.monotonic() < ends:
            batch = first_batch()
            if batch is not None:
                return IN_FORCE, batch
            progress.update(int(wait_s - (ends - time.monotonic())), "waiting for two commits")
            time.sleep(POLL_EVERY_S)
    return REQUESTED, None
