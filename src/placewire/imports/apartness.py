"""Whether two polygons surely have no point in common."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ring: TypeAlias = tuple[tuple[float, float], ...]

MOST_PAIRS = 4_000_000  # of edges; beyond it nobody looks, and they count as touching
SLACK = 1e-12  # degrees squared: what is nearer to a line than rounding counts as on it


def rings_apart(first: tuple[Ring, ...], second: tuple[Ring, ...]) -> bool:
    """True if no edges touch and neither is inside the other; False if that is not sure."""
    edges, others = ring_edges(first), ring_edges(second)
    near, other_near = edges_near(edges, others), edges_near(others, edges)
    if len(near) * len(other_near) > MOST_PAIRS:
        return False
    if len(near) and len(other_near) and any_touch(near, other_near):
        return False
    return not any(in_rings(ring[0], others) for ring in first) and not any(
        in_rings(ring[0], edges) for ring in second
    )


def ring_edges(rings: tuple[Ring, ...]) -> NDArray[np.float64]:
    """Edges as rows of x, y, x, y."""
    found = []
    for ring in rings:
        positions = np.array(ring)
        found.append(np.hstack([positions[:-1], positions[1:]]))
    return np.vstack(found)


def edges_near(edges: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The edges whose bounding boxes touch that of the others."""
    west, east = others[:, 0::2].min(), others[:, 0::2].max()
    south, north = others[:, 1::2].min(), others[:, 1::2].max()
    xs, ys = edges[:, 0::2], edges[:, 1::2]
    near = (
        (xs.min(axis=1) <= east)
        & (xs.max(axis=1) >= west)
        & (ys.min(axis=1) <= north)
        & (ys.max(axis=1) >= south)
    )
    kept: NDArray[np.float64] = edges[near]
    return kept


def any_touch(edges: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether any two edges cross or touch: each has ends on both sides of the other, or on it."""
    ax, ay, bx, by = edges.T[:, :, None]
    cx, cy, dx, dy = others.T[:, None, :]
    boxes = (
        (np.minimum(ax, bx) <= np.maximum(cx, dx))
        & (np.maximum(ax, bx) >= np.minimum(cx, dx))
        & (np.minimum(ay, by) <= np.maximum(cy, dy))
        & (np.maximum(ay, by) >= np.minimum(cy, dy))
    )
    c_side = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    d_side = (bx - ax) * (dy - ay) - (by - ay) * (dx - ax)
    a_side = (dx - cx) * (ay - cy) - (dy - cy) * (ax - cx)
    b_side = (dx - cx) * (by - cy) - (dy - cy) * (bx - cx)
    meet = ~same_side(c_side, d_side) & ~same_side(a_side, b_side)
    return bool((boxes & meet).any())


def same_side(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.bool_]:
    return ((first > SLACK) & (second > SLACK)) | ((first < -SLACK) & (second < -SLACK))


def in_rings(point: tuple[float, float], edges: NDArray[np.float64]) -> bool:
    """Even-odd, for a point that is on no edge."""
    x, y = point
    ax, ay, bx, by = edges[(edges[:, 1] > y) != (edges[:, 3] > y)].T
    return bool(np.count_nonzero(x < (bx - ax) * (y - ay) / (by - ay) + ax) % 2)
