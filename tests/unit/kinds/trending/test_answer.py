"""The most frequent terms of several files equal a plain count."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placewire.api import open_snapshot, replay
from placewire.kinds.trending.answer import Counted, least_count

WORDS = [f"w{n:02d}" for n in range(40)]
BOX = [-1.0, -1.0, 0.2, 0.5]
OBJECTS = 400


def make_objects() -> list[dict[str, Any]]:
    """Objects whose words have equal counts now and then."""
    drawn = random.Random(4)
    return [
        {
            "type": "object",
            "id": f"o{n}",
            "ts": f"2026-03-01T12:{n // 60:02d}:{n % 60:02d}Z",
            "lon": drawn.uniform(-1, 1),
            "lat": drawn.uniform(-1, 1),
            "text": " ".join(drawn.choices(WORDS, [1 / (1 + w) for w in range(40)], k=4)),
        }
        for n in range(OBJECTS)
    ]


@pytest.mark.parametrize("batch_rows", [50, OBJECTS])
def test_answers_equal_a_plain_count(tmp_path: Path, batch_rows: int) -> None:
    objects = make_objects()
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(one) + "\n" for one in objects))
    state = tmp_path / "state"
    replay(log, tmp_path / "results.jsonl", state=state, batch_rows=batch_rows)
    inside = [
        one for one in objects if BOX[0] <= one["lon"] <= BOX[2] and BOX[1] <= one["lat"] <= BOX[3]
    ]
    counts = Counter(word for one in inside for word in set(one["text"].split()))
    expected = sorted(
        ([word, count] for word, count in counts.items()), key=lambda x: (-x[1], x[0])
    )
    with open_snapshot(state) as snapshot:
        for k in (1, 2, 5, 17, 39, 1000):
            query = {"kind": "trending", "region": {"box": BOX}, "k": k, "last": "P1D"}
            assert snapshot.answer(query)["terms"] == expected[:k]


def test_no_frequent_term_is_below_the_least_count() -> None:
    rng = np.random.default_rng(3)
    retained: Any = None
    for _ in range(200):
        files = int(rng.integers(1, 5))
        k = int(rng.integers(1, 6))
        table = rng.integers(0, 12, (files, 12))
        counted = []
        for row in table:
            terms = np.flatnonzero(row).astype(np.uint32)
            counted.append(Counted(retained, terms, row[terms], 0))
        if not any(one.terms.size for one in counted):
            continue
        sums = table.sum(axis=0)
        best = np.flatnonzero(sums >= max(1, np.sort(sums)[-min(k, sums.size)]))
        least = least_count(counted, k)
        assert (table[:, best].max(axis=0) >= least).all()
