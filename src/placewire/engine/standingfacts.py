"""How a state stands, as one JSON object and as metrics, for whoever shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from placewire.engine.standing import KINDS, Standing
from placewire.plan.adjusting import imbalance
from placewire.state.lag import Lag

COUNTS = ("objects", "candidates", "matches", "bytes", "busy_s")
BY_WORKER = ("subscriptions", *COUNTS)
SAID = (
    "name", "method", "by_hand", "workers", "sized", "version", "why", "changed", "next_why",
    "next_workers",
)  # fmt: skip

BESIDE = ("method", "version", "subscriptions")

Metric = tuple[str, str, dict[str, float]]


def plans_of(standing: Standing) -> dict[str, dict[str, Any]]:
    manifest = standing.manifest
    return {
        "boolean": manifest.plan,
        "nearest": manifest.near_plan,
        "relevant": manifest.relevant_plan,
    }


def told_of(entry: dict[str, Any]) -> dict[str, Any]:
    """What is told of a plan."""
    told = {name: entry[name] for name in SAID if name in entry}
    if "beside" in entry:
        told["beside"] = {name: entry["beside"][name] for name in BESIDE}
    return told


def to_facts(standing: Standing, most: int) -> dict[str, Any]:
    """The same as one JSON object."""
    manifest = standing.manifest
    facts: dict[str, Any] = {
        "batch": manifest.batch,
        "events": manifest.counters.events,
        "objects": manifest.counters.objects,
        "results": manifest.counters.results,
        "dead_letters": manifest.counters.dead_letters,
        "subscriptions": standing.subscriptions,
        "plans": {kind: told_of(entry) for kind, entry in plans_of(standing).items()},
        "workers": {
            KINDS[entry.kind]: {
                "batch": entry.batch,
                **{name: getattr(entry, name) for name in BY_WORKER},
            }
            for entry in standing.workers
        },
        "history": [
            {"batch": entry.batch, "kind": KINDS[entry.kind]}
            | {name: getattr(entry, name) for name in BY_WORKER}
            for entry in (manifest.signals.history if manifest.signals is not None else [])
        ],
    }
    if standing.asked is not None:
        facts["asked"] = standing.asked.wish()
    if standing.lag is not None:
        facts["lag"] = msgspec.to_builtins(standing.lag)
    loads = standing.loads
    if loads is not None:
        facts["imbalance"] = imbalance(loads.by_worker)
        facts["leaves_in_all"] = loads.leaves.total
        whole = max(float(loads.load.sum()), 1e-12)
        facts["leaves"] = [
            {"leaf": leaf, "box": list(loads.degrees(leaf)), "workers": loads.workers_of(leaf)}
            | loads.of_leaf(leaf)
            | {"load_ns": float(loads.load[leaf]), "share": float(loads.load[leaf]) / whole}
            for leaf in loads.heaviest(most)
        ]
    return facts


class Families:
    """Metrics in the text format that Prometheus reads, a family after another."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, name: str, kind: str, about: str, values: dict[str, float]) -> None:
        self.lines.append(f"# HELP placewire_{name} {about}")
        self.lines.append(f"# TYPE placewire_{name} {kind}")
        self.lines += [f"placewire_{name}{labels} {value:.15g}" for labels, value in values.items()]

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def to_metrics(standing: Standing, most: int) -> str:
    """All that is known of a state, for Prometheus."""
    manifest = standing.manifest
    families = Families()
    add = families.add
    counters = manifest.counters
    for name in ("events", "objects", "results", "dead_letters"):
        about = f"{name.replace('_', ' ')} since the log began"
        add(f"{name}_total", "counter", about, {"": float(getattr(counters, name))})
    add("batch", "gauge", "the last committed batch", {"": float(manifest.batch)})
    live = {f'{{kind="{kind}"}}': float(n) for kind, n in standing.subscriptions.items()}
    add("subscriptions", "gauge", "live subscriptions", live)
    if standing.lag is not None:
        for name, about, values in lag_metrics(standing.lag):
            add(name, "gauge", about, values)
    add_loads(families, standing, most)
    return families.text()


def load_metrics(standing: Standing, most: int) -> str:
    """Plans, workers and leaves alone."""
    families = Families()
    add_loads(families, standing, most)
    return families.text()


def add_loads(families: Families, standing: Standing, most: int) -> None:
    """The plans in force, and what workers and leaves did."""
    add = families.add
    versions = {
        f'{{kind="{kind}"}}': float(entry["version"])
        for kind, entry in plans_of(standing).items()
        if entry
    }
    add("plan_version", "gauge", "the plan in force", versions)
    beside = standing.manifest.plan.get("beside", {})
    older = {"": float(beside.get("subscriptions", 0))}
    add("older_plan_subscriptions", "gauge", "go by an older plan beside the one in force", older)
    for count in BY_WORKER:
        values = {
            f'{{kind="{KINDS[entry.kind]}",worker="{worker}"}}': float(value)
            for entry in standing.workers
            for worker, value in enumerate(getattr(entry, count))
        }
        add(f"worker_{count}", "gauge", f"{count} of a worker in the last batch", values)
    loads = standing.loads
    if loads is not None:
        worst = imbalance(loads.by_worker)
        add("imbalance", "gauge", "the largest load of a worker over the mean", {"": worst})
        shown = [
            (leaf, worker) for leaf in loads.heaviest(most) for worker in loads.workers_of(leaf)
        ]
        for name, table in {"subscriptions": loads.held, **loads.named_counts}.items():
            values = {
                f'{{leaf="{leaf}",worker="{worker}"}}': float(table[leaf, worker])
                for leaf, worker in shown
            }
            add(f"leaf_{name}", "gauge", f"{name} of a leaf at a worker lately", values)


def lag_metrics(lag: Lag) -> Iterator[Metric]:
    """Names, meanings and values by labels, for Prometheus."""
    for name, about in (
        ("messages", "messages that wait in a topic"),
        ("files", "files that wait in a folder"),
        ("bytes", "bytes that wait in a folder"),
        ("versions", "versions that wait in a table"),
    ):
        values = {
            label(source=source.source): float(getattr(source, name))
            for source in lag.sources
            if getattr(source, name) is not None
        }
        if values:
            yield f"source_waiting_{name}", about, values
    partitions = {
        label(source=source.source, partition=partition): float(messages)
        for source in lag.sources
        for partition, messages in source.partitions.items()
    }
    if partitions:
        yield "partition_waiting_messages", "messages that wait in a partition", partitions
    lacking = {label(sink=name): float(batches) for name, batches in lag.sinks.items()}
    if lacking:
        yield "sink_lacking_batches", "committed batches that a sink lacks", lacking


def label(**names: str) -> str:
    """Labels as Prometheus reads them: quoted as JSON quotes."""
    pairs = (f"{name}={msgspec.json.encode(value).decode()}" for name, value in names.items())
    return "{" + ",".join(pairs) + "}"
