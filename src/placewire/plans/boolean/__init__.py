"""Plans that divide the world into leaves by space, by text or by both, and their planner.

- planner: the plan in force, from the sample to the manifest
- methods: the methods by name, and plans made with them
- space_methods: `grid`, `kdtree`, `rtree` and `agrid`, by space alone
- term_methods: `frequency`, `metric`, `termhash` and `hypergraph`, by text alone
- kdt: PS2Stream's hybrid of space and text
- qt: SSTD's QT-tree and its two baselines, `quadtree` and `text`
- subset: what a node has of the sample, and how it is cut
"""
