"""`placewire status` and `placewire rebalance`: show the plans of a state or server, change one."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from placewire.cli.maps import can_draw, draw_load_map
from placewire.cli.options import CommandTarget, open_client
from placewire.cli.output import (
    CommandSummary,
    Heading,
    ProgressLine,
    format_figure,
    format_lag,
    format_request,
    print_table,
)
from placewire.model.errors import Unusable
from placewire.plans.boolean.methods import METHODS
from placewire.plans.names import PLANS
from placewire.status import StateStatus, describe_status, format_metrics, open_state, read_status
from placewire.storage.manifest import LeafPlanEntry, read_latest
from placewire.storage.runtime_files import Lag, read_request, request_plan

Facts = dict[str, Any]

WORKER_HEADINGS: list[Heading] = [
    ("", "worker"), ("subscrip-", "tions"), ("", "objects"), ("candidates", "looked at"),
    ("", "matches"), ("", "bytes"), ("busy,", "ms"), ("busy /", "mean"),
]  # fmt: skip
LEAF_HEADINGS: list[Heading] = [
    ("", "leaf"), ("", "west"), ("", "south"), ("", "east"), ("", "north"), ("", "workers"),
    ("subscrip-", "tions"), ("", "objects"), ("candidates", "looked at"), ("", "matches"),
    ("", "bytes"), ("busy,", "ms"), ("share of", "load, %"),
]  # fmt: skip
HISTORY_HEADINGS: tuple[Heading, ...] = (
    ("", "batch"), ("", "workers"), ("", "objects"), ("", "candidates"), ("", "matches"),
    ("busiest", "ms"), ("of the", "mean"),
)  # fmt: skip


def run_status(
    target: CommandTarget, leaves: int, map_path: Path | None, as_json: bool, metrics: bool
) -> None:
    """Print the status of a state or a server; raises Unusable."""
    if as_json and metrics:
        raise Unusable("status: give --json or --metrics, not both")
    if target.state is None and map_path is not None:
        raise Unusable("status: --map needs a state directory, not a server")
    status = None if target.state is None else read_status(target.state)
    if status is not None:
        printed = format_metrics(status, leaves) if metrics else describe_status(status, leaves)
    else:
        with open_client(target) as client:
            printed = client.metrics() if metrics else client.status(leaves)
    if isinstance(printed, str):
        sys.stdout.write(printed)
    elif as_json:
        print(json.dumps(printed))
    else:
        print_status(Console(highlight=False), printed)
    if map_path is not None and status is not None:
        draw_loads(map_path, status)


def draw_loads(path: Path, status: StateStatus) -> None:
    """Draw the load of each leaf; raises Unusable."""
    if status.loads is None:
        raise Unusable(
            f"{path}: no load per leaf to draw: it needs a boolean plan with leaves,"
            " --rebalance other than off, and a batch after the last plan change"
        )
    if not can_draw():
        raise Unusable(f"{path}: needs matplotlib, which is not installed: pip install matplotlib")
    try:
        draw_load_map(path, status.loads, status.codes)
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: cannot be written: {error}") from None


def print_status(console: Console, facts: Facts) -> None:
    """Print the status from the facts that `--json` prints."""
    if "service" in facts:
        print_service(facts["service"])
    if facts["batch"] < 0:
        print("nothing is committed yet")
        return
    live = ", ".join(f"{count:,} {kind}" for kind, count in facts["subscriptions"].items())
    print(
        f"batch {facts['batch']}: {facts['events']:,} events, {facts['objects']:,} objects,"
        f" {facts['results']:,} results, {facts['dead_letters']:,} dead letters"
    )
    print(f"subscriptions: {live or 'none'}")
    if "lag" in facts:
        lag = msgspec.convert(facts["lag"], Lag)
        print(f"lag at {lag.at}: {format_lag(lag)}")
    for kind, entry in facts["plans"].items():
        if entry:
            print_plan_entry(kind, entry)
    if "asked" in facts:
        print(format_request(facts["asked"]))
    for kind, did in facts["workers"].items():
        print(f"\n{kind} subscriptions, by worker in batch {did['batch']}:")
        print_table(console, WORKER_HEADINGS, worker_rows(did))
    history = history_rows(facts["history"])
    if len(history) > 1:
        print("\nthe last batches, all kinds of subscription:")
        print_table(console, HISTORY_HEADINGS, history)
    if "leaves" not in facts and facts["plans"]["boolean"].get("changed") == facts["batch"]:
        print("\nno counts by leaf yet: the plan has just been adjusted")
    if facts.get("leaves"):
        print(
            f"\nheaviest of {facts['leaves_in_all']:,} leaves in recent batches; the busiest worker"
            f" has {facts['imbalance']:.2f}x the mean load:"
        )
        print_table(console, LEAF_HEADINGS, [leaf_row(leaf) for leaf in facts["leaves"]])


def print_service(service: Facts) -> None:
    """Print the status of the gateway."""
    print(
        f"pipeline {service['pipeline']}, {service['lag_events']:,} events behind;"
        f" {service['objects_per_s']:,.0f} objects/s in, {service['results_per_s']:,.0f} results/s"
        f" out, {service['streams']:,} streams"
    )
    latency = service["latency_ms"]
    if latency["p50"] is not None:
        print(f"latency {latency['p50']:,.0f} ms, p99 {latency['p99']:,.0f} ms")


def print_plan_entry(kind: str, entry: Facts) -> None:
    """Print the plan of a kind on one line or a few."""
    line = f"plan {kind}={entry.get('by_hand') or entry['name']}: version {entry['version']}"
    line += f" for {entry['workers']} worker{'s' if entry['workers'] > 1 else ''}"
    if entry.get("method") == "stripes":
        line += ", with stripes until a sample of the log is full"
    if "changed" in entry:
        line += f", adjusted after batch {entry['changed']}"
    if entry.get("sized"):
        line += f"; {entry['sized']}"
    print(line + (f"; {entry['why']}" if entry.get("why") else ""))
    if "beside" in entry:
        older = entry["beside"]
        print(
            f"  and {older['method']}, version {older['version']}, for"
            f" {older['subscriptions']:,} older subscriptions"
        )
    if "next_why" in entry:
        print(f"  the next plan takes effect with the next batch; {entry['next_why']}")


def worker_rows(did: Facts) -> list[list[str]]:
    """Return a row for each worker of a batch."""
    busy_s = did["busy_s"]
    mean = max(sum(busy_s) / max(len(busy_s), 1), 1e-12)
    return [
        [
            str(worker),
            f"{did['subscriptions'][worker]:,}" if did["subscriptions"] else "",
            f"{did['objects'][worker]:,}",
            f"{did['candidates'][worker]:,}",
            f"{did['matches'][worker]:,}",
            f"{did['bytes'][worker]:,}",
            format_figure(1e3 * busy_s[worker]),
            f"{busy_s[worker] / mean:.2f}",
        ]
        for worker in range(len(did["objects"]))
    ]


def leaf_row(leaf: Facts) -> list[str]:
    counts = ("subscriptions", "objects", "candidates", "matches", "bytes")
    return [
        str(leaf["leaf"]),
        *(f"{edge:.2f}" for edge in leaf["box"]),
        " ".join(map(str, leaf["workers"])),
        *(f"{leaf[count]:,.0f}" for count in counts),
        format_figure(1e3 * leaf["busy_s"]),
        f"{100 * leaf['share']:.1f}",
    ]


def history_rows(history: list[Facts]) -> list[list[str]]:
    """Return a row for each batch of the history, summed over kinds."""
    batches: dict[int, list[Facts]] = {}
    for entry in history:
        batches.setdefault(entry["batch"], []).append(entry)
    rows = []
    for batch, some in batches.items():
        busy = [sum(each) for each in zip(*(entry["busy_s"] for entry in some), strict=True)]
        counts = [sum(sum(e[name]) for e in some) for name in ("objects", "candidates", "matches")]
        mean = sum(busy) / max(len(busy), 1)
        rows.append(
            [
                str(batch),
                str(len(busy)),
                *(f"{count:,}" for count in counts),
                format_figure(1e3 * max(busy)),
                f"{max(busy) / mean if mean else 1.0:.2f}",
            ]
        )
    return rows


POLL_EVERY_S = 0.1
UNCHANGED, IN_FORCE, REQUESTED = "there already", "in force", "asked for"


def run_rebalance(
    target: CommandTarget, plan: str | None, workers: int | None, wait_s: float
) -> CommandSummary:
    """Request a plan or workers, wait until they are in force, and summarize; raises Unusable."""
    if (plan is None) == (workers is None):
        raise Unusable("rebalance: give either --plan or --workers")
    if plan not in (None, "shared", *METHODS):
        raise Unusable(f"plan: must be one of {', '.join([*METHODS, 'shared'])}, got {plan!r}")
    what = f"plan {plan}" if plan else f"a run with {workers} worker{'s' if workers != 1 else ''}"
    asked = {"plan": plan} if plan else {"workers": workers}
    if target.state is not None:
        said, batch = ask_state(target.state, plan, workers, wait_s)
    else:
        said, batch = ask_server(target, plan, workers, wait_s)
    if said == UNCHANGED:
        line = f"already at {workers} workers; nothing is requested"
    elif said == IN_FORCE:
        line = f"{what} is in force, batch {batch}"
    else:
        line = (
            f"{what} is requested; it takes effect two batches after the pipeline resumes,"
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
        raise Unusable(f"workers: the saved plan is for {entry.workers}, got {workers}")
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
