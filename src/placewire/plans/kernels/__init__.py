"""Compiled loops for planning and routing.

- owners: the worker of each (place, term), and objects routed by it
- term_maps: Bloom filters of the terms posted in each scope
- leaves: leaves of points and ranges
- parts: a sample partitioned by rectangle, term and load
- stab_counts: ranges of cells that contain points
- nearest: distances to the k-th nearest object
- prefixes: loose prefixes of `relevant` rows
"""
