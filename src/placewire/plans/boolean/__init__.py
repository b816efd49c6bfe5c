"""Plans for `boolean` subscriptions: divide space and terms, and route objects.

- `planner`: the plan in force, from its first sample to each new version
- `methods`: all methods by name, and how a plan is made of a sample
- `kdt`: PS2Stream's hybrid of a kd-tree and text parts
- `qt`: SSTD's quadtree with text parts
- `agrid`, `fine_grid`: Tornado's adaptive grid
- `grid`, `kdtree`: division by space alone
- `portion`, `space_parts`, `text_parts`: cut a part of a sample by space or by text
- `allocation`: assign parts to workers
- `baselines`: methods that exist for comparison
"""
