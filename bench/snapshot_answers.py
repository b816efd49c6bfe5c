"""Answers to snapshot queries: their form, and whether two engines gave the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bench.snapshot_queries import Answer

RADIUS_M = 6_371_008.8
MM_M = 0.0011  # engines round a distance to a millimetre, and may do so either way


def boolean_answer(total: int, seqs: Iterable[int]) -> Answer:
    return {"type": "answer", "total": total, "objects": [{"object": f"o{seq}"} for seq in seqs]}


def nearest_answer(seqs: Iterable[int], distances_m: Iterable[float]) -> Answer:
    pairs = zip(seqs, distances_m, strict=True)
    return {"type": "answer", "objects": [{"object": f"o{s}", "distance_m": d} for s, d in pairs]}


def relevant_answer(seqs: Iterable[int], scores: Iterable[float]) -> Answer:
    pairs = zip(seqs, scores, strict=True)
    return {"type": "answer", "objects": [{"object": f"o{s}", "score": x} for s, x in pairs]}


def trending_answer(terms: Iterable[Sequence[object]]) -> Answer:
    return {"type": "answer", "terms": [list(pair) for pair in terms]}


def distances_m(lon: float, lat: float, lons: np.ndarray, lats: np.ndarray) -> np.ndarray:
    """Great-circle distances to points f64[n], in whole millimetres."""
    across, up = np.radians(lons - lon) / 2, np.radians(lats - lat) / 2
    chord = np.sin(up) ** 2 + np.cos(np.radians(lat)) * np.cos(np.radians(lats)) * (
        np.sin(across) ** 2
    )
    return np.rint(2e3 * RADIUS_M * np.arcsin(np.sqrt(np.minimum(chord, 1.0)))) / 1e3


def take_nearest(seqs: np.ndarray, distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k first by (distance, seq)."""
    order = np.lexsort((seqs, distances))[:k]
    return seqs[order], distances[order]


def same_answer(one: Answer, other: Answer) -> bool:
    """Equal, but for a millimetre or the ninth digit of a score."""
    if one.get("total") != other.get("total") or one.get("terms") != other.get("terms"):
        return False
    ours, theirs = one.get("objects", []), other.get("objects", [])
    if [o["object"] for o in ours] != [o["object"] for o in theirs]:
        return False
    return all(
        abs(a.get("distance_m", 0.0) - b.get("distance_m", 0.0)) < MM_M
        and abs(a.get("score", 0.0) - b.get("score", 0.0)) < 2e-9
        for a, b in zip(ours, theirs, strict=True)
    )
