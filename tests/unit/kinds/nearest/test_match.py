"""Candidates of `nearest` rows: the index finds what the scan finds within the circles."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.decode import decode_lines
from placewire.kernels.space.circles import radii_to_limits
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.kinds.boolean.match import make_probe
from placewire.kinds.candidates import Target
from placewire.kinds.nearest.index import index_circles, one_part
from placewire.kinds.nearest.kernels.match import objects_near_postings, objects_near_rows
from placewire.kinds.nearest.match import find_near, scan_near
from placewire.kinds.nearest.results import no_neighbours
from placewire.model.kinds import NEAREST
from placewire.segments.segment import Segment, make_segment, open_segment, write_segment
from placewire.text.analyzer import Analyzer

ROWS, OBJECTS = 3_000, 400
NOON = "2026-03-01T12:00:00Z"


def make_world(seed: int) -> tuple[Segment, Probe, NDArray[np.float64]]:
    """Rows and objects about one place, and the radius of each row's circle."""
    random = np.random.default_rng(seed)

    def near() -> dict[str, float]:
        lon, lat = random.normal([12.0, 48.0], 0.2)
        return {"lon": round(float(lon), 3), "lat": round(float(lat), 3)}

    def words(most: int) -> list[str]:
        return [f"w{min(int(n), 30)}" for n in random.zipf(1.4, random.integers(1, most))]

    lines = [
        {"type": "subscribe", "id": f"s{n}", "ts": NOON, "kind": "nearest", "k": 3, **near()}
        | {"keywords": words(4), "mode": ("any", "all")[n % 2]}
        | ({"within_m": 9_000} if n % 5 == 0 else {})
        for n in range(ROWS)
    ]
    lines += [
        {"type": "object", "id": "o", "ts": NOON, **near(), "text": " ".join(words(9))}
        for _ in range(OBJECTS)
    ]
    raw = np.frombuffer(b"\n".join(json.dumps(line).encode() for line in lines), np.uint8)
    block = decode_lines(raw, 0, Analyzer(3, 5), None, 0)
    assert block.dead == []
    o = block.objects
    probe = make_probe(block.codes, o.lon, o.lat, o.now_us, o.term_offsets, o.terms)
    segment = make_segment(NEAREST, block.rows, no_neighbours(block.rows.k))
    radius = random.lognormal(9.0, 1.0, ROWS)
    index = index_circles(segment.rows, radius, one_part(ROWS))
    return segment._replace(index=index), probe, radius


def test_index_equals_scan_and_kernels_have_one_signature(tmp_path: Path) -> None:
    segment, probe, radius = make_world(1)
    write_segment(tmp_path / "s.plw", segment)
    limits = radii_to_limits(radius)
    dead = np.random.default_rng(2).integers(0, 1 << 63, ROWS // 64 + 1).astype(np.uint64)
    mapped = open_segment(tmp_path / "s.plw")
    for some in (segment, mapped, pickle.loads(pickle.dumps(segment))):
        for bits in (np.empty(0, np.uint64), dead):
            target = Target(some, bits, thresholds=limits)
            every = scan_near(probe, target)
            assert every.measure is not None
            pairs = every.object.astype(np.uint64) << np.uint64(32) | every.row
            inside = np.sort(pairs[every.measure <= radius[every.row]])
            found = find_near(probe, target)
            got = found.object.astype(np.uint64) << np.uint64(32) | found.row
            assert inside.size > 100
            assert np.isin(inside, got).all()
            assert np.isin(got, pairs).all()
            again = find_near(pickle.loads(pickle.dumps(probe)), target)
            assert np.array_equal(again.row, found.row)
    for kernel in (objects_near_postings, objects_near_rows):
        assert len(kernel.signatures) == 1, kernel  # type: ignore[attr-defined]
