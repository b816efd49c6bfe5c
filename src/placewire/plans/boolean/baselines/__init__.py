"""Methods of `boolean` plans for comparison with published systems.

- terms: `frequency`, `metric` and `termhash`, which divide terms
- hypergraph: `hypergraph`, which keeps terms together that occur together
- rtree: `rtree`, the leaves of a packed R-tree
"""
