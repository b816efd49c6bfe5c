"""How does Placewire compare with what a user of another system would run on the same machine?

`spark_sql` and `duckdb_sql` count all (object, subscription) matches by one plan: an inverted index
of subscriptions by (grid cell, term) joined with the terms of each object. `passthrough` carries
the objects through Spark and Python without matching: the ceiling of any pipeline built so.
`lucene_monitor`, `sedona` and `tile38` give pairs that are compared with Placewire's. The
`*_snapshots` modules answer snapshot queries for `bench.papers.sstd`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.harness import Experiment

FEW = {"sizes": (1_000,), "objects": 2_000}

EXPERIMENTS = (
    Experiment(
        "match",
        "How fast is `placewire.match` compared with the same join in Spark SQL?",
        "peers.dataframes:compare_joins",
        quick={"sizes": ((2_000, 20_000, 2_000),), "passes": 1},
    ),
    Experiment(
        "peers",
        "How do Lucene Monitor, Sedona and Tile38 compare on boxes and words?",
        "peers.boolean:compare_peers",
        quick=FEW,
        external=True,
    ),
    Experiment(
        "peers-monitor",
        "How does Lucene Monitor compare?",
        "peers.boolean:compare_peers",
        default={"names": ("Lucene Monitor",)},
        quick=FEW,
        external=True,
    ),
    Experiment(
        "peers-sedona",
        "How does Sedona compare?",
        "peers.boolean:compare_peers",
        default={"names": ("Sedona",)},
        quick=FEW,
        external=True,
    ),
    Experiment(
        "peers-tile38",
        "How does Tile38 compare?",
        "peers.boolean:compare_peers",
        default={"names": ("Tile38",)},
        quick=FEW,
        external=True,
    ),
)
# Letters, numbers and the underscore: what Python's `\w` accepts, in Java's and RE2's words.
WORD_PATTERN = r"[\p{L}\p{N}_]+"


class PeerRun(NamedTuple):
    """One timed run; `seconds` is the stream side only, `prepare_seconds` the standing index."""

    matches: int
    seconds: float
    prepare_seconds: float
    objects_per_s: float


class Answer(NamedTuple):
    """Matches of a peer outside of this process, as pairs of a subscription's row and an object's.

    `seconds` and `processor_s` are of the stream side only, `prepare_s` of registering.
    """

    pairs: np.ndarray  # i64[m, 2], in no order
    seconds: float
    processor_s: float
    prepare_s: float
