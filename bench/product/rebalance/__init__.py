"""Does rebalancing help: plans and assignments that change while the input drifts."""

from __future__ import annotations

from bench.harness import Experiment

SMALL = {"batch": 500, "intervals": 1, "interval": 10, "subscriptions": 3_000}

EXPERIMENTS = (
    Experiment(
        "drift",
        "How much throughput does each way of rebalancing keep while the input drifts?",
        "product.rebalance.drift:compare_adjusters",
        quick=SMALL | {"drifts": ("tornado",)},
        full={"batch": 20_000},
    ),
    Experiment(
        "drift-both",
        "Is a new plan better applied to all subscriptions at once, or to new ones only?",
        "product.rebalance.drift:compare_switching",
        quick=SMALL,
    ),
    Experiment(
        "drift-spark",
        "What does rebalancing gain on Spark with two workers, by the wall clock?",
        "product.rebalance.drift:measure_on_spark",
        quick=SMALL | {"rounds": 1},
    ),
    Experiment(
        "drift-choices",
        "What would each way of rebalancing do with the same loads, and how fast does it decide?",
        "product.rebalance.decisions:compare_decisions",
        quick=SMALL,
    ),
    Experiment(
        "drift-cost",
        "What does counting loads cost when there is nothing to rebalance?",
        "product.rebalance.decisions:measure_counting",
        quick={
            "batches": (500,),
            "rounds": (1,),
            "intervals": 1,
            "interval": 10,
            "subscriptions": 3_000,
        },
    ),
    Experiment(
        "drift-dealing",
        "Do assignments of `nearest` and `relevant` subscriptions stay level?",
        "product.rebalance.assignments:compare_assignments",
        quick={
            "kinds": ("nearest",),
            "batch": 300,
            "intervals": 1,
            "interval": 6,
            "subscriptions": 1_000,
        },
        full={"batch": 10_000, "intervals": 3, "subscriptions": 100_000},
    ),
    Experiment(
        "drift-elastic",
        "Do workers follow a stream that gets eight times as fast?",
        "product.rebalance.elasticity:measure_elasticity",
        quick={"subscriptions": 5_000, "slow": 200},
    ),
    Experiment(
        "drift-moves",
        "How long do results take while plans change?",
        "product.rebalance.latency:measure_moves",
        quick={"rate": 500, "interval": 2, "subscriptions": 2_000},
        full={"interval": 16},
    ),
    Experiment(
        "drift-cold",
        "What does a moved subscription cost its new worker, whose pages are cold?",
        "product.rebalance.page_cache:measure_cold_pages",
        quick={"subscriptions": 10_000, "objects": 10_000, "batch": 1_000},
    ),
)
