"""SSTD: snapshot and continuous queries over a distributed store of spatio-textual objects.

Snapshot queries of section 7 and DuckDB, tantivy, Spark SQL and a scan, and plans for both kinds
of queries on a cluster simulated on one core.
"""

from __future__ import annotations

from bench.harness import POSTS, TRAFFIC, VENUES, Experiment

BOTH = (POSTS, VENUES)

EXPERIMENTS = (
    Experiment(
        "snapshot",
        "How fast are snapshot queries by region, keywords, k and time, and other engines?",
        "papers.sstd.latency:vary_queries",
        data=BOTH,
        quick={"objects": 5_000, "queries": 20},
        full={"objects": 1_000_000, "queries": 1_000},
    ),
    Experiment(
        "snapshot-growth",
        "How do snapshot queries slow down with the number of objects?",
        "papers.sstd.latency:vary_objects",
        data=BOTH,
        quick={"sizes": (2_000, 5_000), "queries": 20},
        full={"sizes": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)},
    ),
    Experiment(
        "snapshot-data",
        "How do snapshot queries depend on where objects are?",
        "papers.sstd.latency:vary_data",
        data=(*BOTH, TRAFFIC),
        quick={"objects": 5_000, "queries": 20},
    ),
    Experiment(
        "snapshot-plans",
        "Which plan answers snapshot queries fastest on eight workers?",
        "papers.sstd.plans:compare_plans",
        data=BOTH,
        quick={"objects": 10_000, "queries": 20, "planning": 50},
        full={"objects": 3_000_000},
    ),
    Experiment(
        "snapshot-theta",
        "How does the number of leaves of `qt` change latency and throughput?",
        "papers.sstd.parameters:vary_theta",
        data=BOTH,
        quick={"objects": 10_000, "queries": 20, "planning": 50},
        full={"objects": 3_000_000},
    ),
    Experiment(
        "snapshot-slices",
        "How long should a time slice of the object store be?",
        "papers.sstd.parameters:vary_slices",
        data=BOTH,
        quick={"objects": 5_000, "queries": 20},
        full={"objects": 3_000_000},
    ),
    Experiment(
        "snapshot-stream",
        "How much slower are snapshot queries while another process commits batches?",
        "papers.sstd.stream:measure_during_replay",
        data=BOTH,
        quick={"objects": 20_000, "queries": 20, "batch_rows": 400},
        full={"objects": 3_000_000},
    ),
    Experiment(
        "continuous",
        "Which plan is fastest for boolean, nearest and trending subscriptions?",
        "papers.sstd.continuous:compare_kinds",
        data=BOTH,
        quick={
            "subscriptions": 2_000,
            "objects": 2_000,
            "nearest_objects": 20_000,
            "nearest_ticks": 3,
            "trending": (20, 40, 80),
            "trending_objects": 3_000,
        },
        full={"subscriptions": 1_000_000, "trending": (1_000, 2_000, 20_000)},
    ),
)
