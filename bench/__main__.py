"""`python -m bench [--data DIR] [--only NAME,..] [--full]`: one run, side by side."""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path

from bench import (
    analyzers,
    anatomy,
    boolean_peers,
    churn,
    continuous,
    decoding,
    drift,
    drift_both,
    drift_choices,
    drift_cold,
    drift_dealing,
    drift_elastic,
    drift_moves,
    drift_spark,
    endless,
    endtoend,
    growth,
    hard,
    hybrid,
    kernel,
    latency,
    loading,
    matching,
    nearest,
    nearest_growth,
    nearest_sweeps,
    partitioning,
    plans,
    recovery,
    relevant,
    relevant_buffers,
    relevant_growth,
    relevant_index,
    relevant_plans,
    relevant_sweeps,
    routing,
    service,
    simulation,
    snapshot,
    snapshot_growth,
    snapshot_plans,
    snapshot_stream,
    snapshot_sweeps,
    throughput,
    tornado,
    webhooks,
)
from bench.settings import Choice

EXPERIMENTS = {
    "kernel": kernel.run,
    "throughput": throughput.run,
    "anatomy": anatomy.run,
    "growth": growth.run,
    "decoding": decoding.run,
    "analyzers": analyzers.run,
    "loading": loading.run,
    "match": matching.run,
    "churn": churn.run,
    "hard": hard.run,
    "latency": latency.run,
    "plan-latency": latency.run_plans,
    "partitioning": partitioning.run,
    "hybrid": hybrid.run,
    "levelling": partitioning.run_levelling,
    "repeats": partitioning.run_repeats,
    "plans": plans.run,
    "routing": routing.run,
    "tornado": tornado.run,
    "nearest": nearest.run,
    "nearest-sweeps": nearest_sweeps.run,
    "nearest-growth": nearest_growth.run,
    "snapshot": snapshot.run,
    "snapshot-growth": snapshot_growth.run,
    "snapshot-data": snapshot_growth.run_data,
    "snapshot-plans": snapshot_plans.run,
    "snapshot-theta": snapshot_sweeps.run_theta,
    "snapshot-slices": snapshot_sweeps.run_slices,
    "snapshot-stream": snapshot_stream.run,
    "relevant": relevant.run,
    "relevant-prunings": relevant_index.run,
    "relevant-groups": relevant_index.run_groups,
    "relevant-buffers": relevant_buffers.run,
    "relevant-sweeps": relevant_sweeps.run,
    "relevant-window": relevant_sweeps.run_window,
    "relevant-growth": relevant_growth.run,
    "relevant-plans": relevant_plans.run,
    "endless": endless.run,
    "endtoend": endtoend.run,
    "simulation": simulation.run,
    "recovery": recovery.run,
    "service": service.run,
    "webhooks": webhooks.run,
    "continuous": continuous.run,
    "drift": drift.run,
    "drift-choices": drift_choices.run,
    "drift-cost": drift_choices.run_cost,
    "drift-cold": drift_cold.run,
    "drift-both": drift_both.run,
    "drift-dealing": drift_dealing.run,
    "drift-elastic": drift_elastic.run,
    "drift-moves": drift_moves.run,
    "drift-spark": drift_spark.run,
}
# Only when named: they fetch what is of others.
PEERS = {
    "peers": boolean_peers.run,
    "peers-monitor": boolean_peers.run_one("Lucene Monitor"),
    "peers-sedona": boolean_peers.run_one("Sedona"),
    "peers-tile38": boolean_peers.run_one("Tile38"),
}
# Only when named: they need minutes, and up to 16 GB.
LARGE = {
    f"nearest-{size // 1_000_000}m": partial(nearest_growth.run_sizes, sizes=(size,))
    for size in (nearest_growth.MANY, *nearest_growth.LARGE)
} | {"growth-10m": partial(growth.run_sizes, sizes=(growth.LARGE,))}


def main() -> None:
    """Run the chosen experiments; each prints its table and keeps it under bench/out."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        help="a directory with posts_us.parquet, and venues_us.parquet for nearest",
    )
    parser.add_argument("--only", default=",".join(EXPERIMENTS), help="names, with commas")
    parser.add_argument("--full", action="store_true", help="the large sizes, beyond ten minutes")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    known = EXPERIMENTS | PEERS | LARGE
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"unknown experiment {unknown[0]!r}; there are {', '.join(known)}")
    with tempfile.TemporaryDirectory(prefix="placewire-bench-") as folder:
        choice = Choice(arguments.data, arguments.full, Path(folder))
        for name in names:
            started = time.monotonic()
            print(f"## {name} ({choice.name})\n", flush=True)
            known[name](choice)
            print(f"({name}: {time.monotonic() - started:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
