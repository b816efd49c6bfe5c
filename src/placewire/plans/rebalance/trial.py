"""Trying a plan out: what its workers would do with the recent sample, in the segments as they are.

Models tell what a plan is likely to cost, and plans are made level by them. A plan that is to take
another's place is tried as well: the sample is routed by it, and each worker's share is matched.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.cells import codes_to_points
from placewire.kinds.boolean.match import make_probe, match_all
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.cost.measures import Objects
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import Leaves
from placewire.plans.route.leaf_route import LeafRoute, make_tables
from placewire.plans.route.live_terms import LiveTerms
from placewire.segments.live_segment import LiveSegment


def try_plan(
    leaves: Leaves,
    objects: Objects,
    rows: SubscriptionRows,
    segments: Sequence[LiveSegment],
    cost: LoadModel,
) -> NDArray[np.float64]:
    """The load of each worker by what it would look at: f64[workers]; `rows` are the live ones.

    Objects are at the middles of their cells.
    """
    live = LiveTerms(leaves)
    live.rebuild([rows])
    route = LeafRoute(leaves.workers, leaves.summary, make_tables(leaves), live.tables)
    lon, lat = codes_to_points(objects.codes)
    pairs = [(one.segment, one.dead) for one in segments]
    loads = np.zeros(leaves.workers)
    for share in route.cut(*objects):
        at = share.objects
        probe = make_probe(
            objects.codes[at],
            lon[at],
            lat[at],
            np.zeros(at.size, np.int64),
            share.term_offsets,
            share.terms,
            share.probed,
            share.alone,
        )
        looked = sum(found.candidates for found in match_all(probe, pairs))
        loads[share.worker] = cost.per_object * at.size + cost.per_posting * looked
    return loads
