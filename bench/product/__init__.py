"""How fast is Placewire: kernel, pipeline, service, recovery, and larger clusters by projection."""

from __future__ import annotations

from bench.harness import Experiment

EXPERIMENTS = (
    Experiment(
        "kernel",
        "How many objects a second does one core match compared with DuckDB on two threads?",
        "product.kernel:measure_kernel",
        quick={"objects": 16_384, "sizes": (10_000,)},
    ),
    Experiment(
        "growth",
        "How does matching slow down from 10,000 to 5 M subscriptions?",
        "product.kernel:measure_growth",
        quick={"objects": 8_192, "sizes": (1_000, 10_000)},
        full={
            "sizes": (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 5_000_000, 10_000_000)
        },
    ),
    Experiment(
        "growth-10m",
        "How fast is matching at 10 M subscriptions?",
        "product.kernel:measure_growth",
        default={"sizes": (10_000_000,)},
        quick={"objects": 8_192, "sizes": (20_000,)},
        large=True,
    ),
    Experiment(
        "hard",
        "What do regions, expressions and places cost that an index helps least with?",
        "product.kernel:measure_hard_cases",
        quick={"scale": 0.02},
    ),
    Experiment(
        "decoding",
        "How many subscribe lines a second become rows?",
        "product.decoding:measure_decoding",
        quick={"lines": 5_000},
    ),
    Experiment(
        "analyzers",
        "What does each analyzer cost, alone and in a replay?",
        "product.analyzers:compare_analyzers",
        quick={"objects": 5_000, "subscriptions": 1_000, "city_objects": 20_000, "rounds": 2},
    ),
    Experiment(
        "throughput",
        "How many objects a second go through Spark compared with Spark SQL and a pass-through?",
        "product.pipeline:measure_throughput",
        quick={"sizes": ((5_000, 40_000, 5_000),), "batch_rows": 10_000},
    ),
    Experiment(
        "anatomy",
        "Where does the time of a batch on Spark go?",
        "product.pipeline:measure_anatomy",
        quick={"objects": 60_000, "subscriptions": 5_000, "large": 15_000, "small": 1_000},
    ),
    Experiment(
        "loading",
        "How long does it take to load and to reopen subscriptions, and how large are they?",
        "product.subscriptions:measure_loading",
        quick={"sizes": (20_000,), "batch_rows": 5_000},
    ),
    Experiment(
        "churn",
        "How many subscribes and unsubscribes a second are sustained while objects are matched?",
        "product.subscriptions:measure_churn",
        quick={"standing": 5_000, "changes": 1_000, "objects": 400, "batches": 8},
        full={"batches": 40},
    ),
    Experiment(
        "latency",
        "How long does an object take from the log to a sink, at a steady rate?",
        "product.latency:measure_latency",
        quick={"rate": 1_000, "subscriptions": 5_000, "seconds": 5.0},
        full={"seconds": 120.0},
    ),
    Experiment(
        "endtoend",
        "How fast is `placewire run` between topics and between folders, compared with a copy job?",
        "product.endtoend:measure_end_to_end",
        quick={
            "subscriptions": 5_000,
            "batch": 3_000,
            "batches": 4,
            "rate": 200,
            "seconds": 5.0,
        },
    ),
    Experiment(
        "service",
        "How many results a second does the server stream to open connections?",
        "product.service:measure_service",
        data=(),
        quick={"streams": 50, "seconds": 15.0},
        full={"streams": 10_000, "seconds": 180.0},
    ),
    Experiment(
        "webhooks",
        "How many results a second does the server deliver to webhooks?",
        "product.webhooks:measure_webhooks",
        data=(),
        quick={"seconds": 3.0, "waiting": 5_000},
        full={"seconds": 60.0},
    ),
    Experiment(
        "recovery",
        "How long after a killed worker or driver is the next commit, and are results the same?",
        "product.recovery:measure_recovery",
        quick={"objects": 20_000, "subscriptions": 2_000},
        full={"objects": 1_500_000},
    ),
    Experiment(
        "endless",
        "Do memory and state stay bounded over hours of event time?",
        "product.soak:measure_soak",
        quick={"objects": 20_000},
        full={"objects": 3_000_000},
    ),
    Experiment(
        "simulation",
        "What would 1 to 100 workers do with 1 to 100 M subscriptions, by measured costs?",
        "product.projection:measure_and_project",
        quick={
            "objects": 20_000,
            "rows": 4_000,
            "sizes": (1_000, 5_000, 20_000),
            "held_out": 10_000,
            "turns": 1,
        },
    ),
)
