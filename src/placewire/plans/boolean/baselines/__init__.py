"""Partitioning methods that exist for comparison with `kdt`, `qt` and `agrid`.

- `frequency`, `metric`, `hypergraph`: division by text alone
- `rtree`: division by space alone
"""
