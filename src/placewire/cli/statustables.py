"""How things stand, as lines and tables."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console

from placewire.cli.lag import lag_line
from placewire.cli.tables import Heading, figure, print_rows
from placewire.storage.notes import Lag

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


def print_status(console: Console, facts: Facts) -> None:
    """All of it, from the facts that `--json` prints."""
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
        print(f"lag at {lag.at}: {lag_line(lag)}")
    for kind, entry in facts["plans"].items():
        if entry:
            print_plan(kind, entry)
    if "asked" in facts:
        print(asked_line(facts["asked"]))
    for kind, did in facts["workers"].items():
        print(f"\n{kind} subscriptions, by worker in batch {did['batch']}:")
        print_rows(console, WORKER_HEADINGS, worker_rows(did))
    history = history_rows(facts["history"])
    if len(history) > 1:
        print("\nthe last batches, all kinds of subscription:")
        print_rows(console, HISTORY_HEADINGS, history)
    if "leaves" not in facts and facts["plans"]["boolean"].get("changed") == facts["batch"]:
        print("\nno counts by leaf yet: the plan has just been adjusted")
    if facts.get("leaves"):
        print(
            f"\nheaviest of {facts['leaves_in_all']:,} leaves lately; the busiest worker has"
            f" {facts['imbalance']:.2f} x the mean load:"
        )
        print_rows(console, LEAF_HEADINGS, [leaf_row(leaf) for leaf in facts["leaves"]])


def print_service(service: Facts) -> None:
    """What the gateway says of itself."""
    print(
        f"pipeline {service['pipeline']}, {service['lag_events']:,} events behind;"
        f" {service['objects_per_s']:,.0f} objects/s in, {service['results_per_s']:,.0f} results/s"
        f" out, {service['streams']:,} streams"
    )
    latency = service["latency_ms"]
    if latency["p50"] is not None:
        print(f"latency {latency['p50']:,.0f} ms, p99 {latency['p99']:,.0f} ms")


def print_plan(kind: str, entry: Facts) -> None:
    line = f"plan {kind}={entry.get('by_hand') or entry['name']}: version {entry['version']}"
    line += f" for {entry['workers']} worker{'s' if entry['workers'] > 1 else ''}"
    if entry.get("method") == "stripes":
        line += ", by stripes until a sample of the log is full"
    if "changed" in entry:
        line += f", adjusted after batch {entry['changed']}"
    if entry.get("sized"):
        line += f"; {entry['sized']}"
    print(line + (f"; {entry['why']}" if entry.get("why") else ""))
    if "beside" in entry:
        older = entry["beside"]
        print(
            f"  beside it {older['method']}, version {older['version']}, for"
            f" {older['subscriptions']:,} subscriptions that there were before"
        )
    if "next_why" in entry:
        print(f"  the next plan comes into force with the next batch; {entry['next_why']}")


def asked_line(asked: Facts) -> str:
    """What somebody asked for by hand and nobody has taken up yet."""
    what = " and ".join(f"{name} {asked[name]}" for name in ("plan", "workers") if name in asked)
    are = "are asked for: they are" if len(asked) > 1 else "is asked for: it is"
    return f"{what} {are} taken up with the next batch, in force with the one after"


def worker_rows(did: Facts) -> list[list[str]]:
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
            figure(1e3 * busy_s[worker]),
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
        figure(1e3 * leaf["busy_s"]),
        f"{100 * leaf['share']:.1f}",
    ]


def history_rows(history: list[Facts]) -> list[list[str]]:
    """What workers did batch by batch, as the manifest keeps it."""
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
                figure(1e3 * max(busy)),
                f"{max(busy) / mean if mean else 1.0:.2f}",
            ]
        )
    return rows
