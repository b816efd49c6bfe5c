"""Search kernels are compiled once: structures have the same types in memory and from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from placewire.api import open_snapshot, replay
from placewire.kinds.trending.kernels.sweep import groups_reported
from placewire.kinds.trending.kernels.term_counts import (
    groups_counted,
    groups_entered,
    terms_counted,
)
from placewire.objects.kernels.find import nearest_in_lists, rows_found

REGIONS: list[dict[str, Any]] = [
    {},
    {"region": {"box": [-1, -1, 1, 1]}},
    {"region": {"circle": {"lon": 0, "lat": 0, "radius_m": 1e5}}},
    {"region": {"polygon": [[[-1, -1], [1, -1], [1, 1], [-1, -1]]]}},
]
QUERIES: list[dict[str, Any]] = [
    *({"kind": "boolean", **region} for region in REGIONS[1:]),
    *({"kind": "boolean", "where": "coffee OR tea", **region} for region in REGIONS),
    *({"kind": "trending", "k": 2, **region} for region in REGIONS),
    {"kind": "nearest", "lon": 0, "lat": 0, "keywords": ["coffee", "tea"], "k": 2},
    {"kind": "nearest", "lon": 0.5, "lat": 0, "keywords": ["coffee"], "k": 9, "mode": "all",
     "within_m": 5e4},
]  # fmt: skip


def make_log(path: Path) -> Path:
    """Objects of three batches, with reports of each region that count all of them."""
    lines: list[dict[str, Any]] = [
        {"type": "subscribe", "id": f"t{n}", "ts": "2026-03-01T12:00:00Z", "kind": "trending",
         "k": 2, "window": "PT3M", "every": "PT30S", **region}
        for n, region in enumerate(REGIONS)
    ]  # fmt: skip
    for n in range(26):
        ts = f"2026-03-01T12:{n // 4:02d}:{15 * (n % 4):02d}Z"
        point = {"lon": n / 26, "lat": 0.1}
        lines.append({"type": "object", "id": f"o{n}", "ts": ts, **point, "text": "coffee tea"})
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


def test_each_kernel_has_one_signature(tmp_path: Path) -> None:
    state = tmp_path / "state"
    settings = {"retention": "PT1H"}
    log = make_log(tmp_path / "log.jsonl")
    replay(log, tmp_path / "results.jsonl", state=state, settings=settings, batch_rows=10)
    with open_snapshot(state) as snapshot:
        for query in QUERIES:
            snapshot.answer({"last": "PT2M", **query})
            snapshot.answer({"last": "PT1H", **query})
    for kernel in (
        groups_counted,
        groups_entered,
        groups_reported,
        nearest_in_lists,
        rows_found,
        terms_counted,
    ):
        signatures: list[Any] = kernel.signatures  # type: ignore[attr-defined]
        assert len(signatures) == 1, kernel.__name__
