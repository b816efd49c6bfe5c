"""PS2Stream: distributed spatio-textual publish/subscribe with hybrid partitioning.

Query sets Q1, Q2 and Q3, its stream of objects and changes, and every plan on them: by load model,
on a cluster simulated on one core, and through Spark.
"""

from __future__ import annotations

from bench.harness import Experiment

FEW = {"subscriptions": 5_000, "objects": 4_000}
MANY = {"subscriptions": 1_000_000}
ALL_SETS = ("Q1", "Q2", "Q3")

EXPERIMENTS = (
    Experiment(
        "partitioning",
        "Which plan has the best throughput, balance and memory on Q1, Q2 and Q3?",
        "papers.ps2stream.partitioning:compare_plans",
        quick=FEW | {"sets": ("Q1", "Q3"), "scaled_sets": ("Q1",), "scales": (4, 8)},
        full=MANY | {"scaled_sets": ("Q1", "Q2", "Q3", "Q2 rare", "Q3 rare")},
    ),
    Experiment(
        "levelling",
        "Is `kdt` better balanced by PS2Stream's load or by the postings that objects meet?",
        "papers.ps2stream.partitioning:compare_load_models",
        quick=FEW,
        full=MANY,
    ),
    Experiment(
        "repeats",
        "How much do speeds of `kdt` and of plans by space vary between runs?",
        "papers.ps2stream.partitioning:repeat_runs",
        quick=FEW | {"scales": (4,), "repeats": 2},
        full=MANY,
    ),
    Experiment(
        "hybrid",
        "What could partitioning by text save, and what does `kdt` save?",
        "papers.ps2stream.hybrid:compare_loads",
        quick=FEW | {"sets": ("Q1", "Q3")},
        full=MANY,
    ),
    Experiment(
        "routing",
        "What do making a plan and routing by it cost, compared with matching?",
        "papers.ps2stream.hybrid:measure_routing",
        quick=FEW | {"sets": ("Q3",)},
    ),
    Experiment(
        "plans",
        "How fast is each plan through Spark on two cores?",
        "papers.ps2stream.pipeline:measure_plans",
        quick={
            "standing": 2_000,
            "objects": 20_000,
            "sets": ("Q3",),
            "plans": ("shared", "grid", "kdt"),
            "small_batch": 400,
        },
        full={"standing": 1_000_000, "objects": 1_000_000},
    ),
    Experiment(
        "plan-latency",
        "What latency has each plan on a growing log?",
        "papers.ps2stream.pipeline:measure_plan_latency",
        quick={"rate": 500, "standing": 2_000, "seconds": 3.0, "plans": ("shared", "kdt")},
        full={"sets": ALL_SETS},
    ),
)
