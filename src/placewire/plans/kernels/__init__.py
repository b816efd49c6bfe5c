"""Compiled parts of planning and routing.

- `leaves`, `overlapping_leaves`: the leaf of a point, the leaves that a range overlaps
- `owners`: the one worker that probes each term of an object
- `holders`: the workers that must hold a subscription
- `parts`: what a rectangle or a set of terms takes of a sample
- `quadtree`: statistics of a quadtree's cells
- `stab_counts`: how many posted ranges each point meets
- `nearest`: distances and assignments for `nearest` subscriptions
- `prefixes`: the terms without which an object cannot reach a threshold
"""
