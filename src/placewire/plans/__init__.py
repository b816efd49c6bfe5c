"""Divide the work among workers: partition space and terms, route objects, rebalance loads.

A plan decides which worker matches what. It changes speed and never results.

- `planners`: the plans in force, one for each kind that can be planned
- `names`: the option `--plan`
- `leaves`: a plan as data: rectangles of cells, their parts by term, a worker for each part
- `ref`: a plan by its file names, as tasks receive it
- `messages`: what the coordinator sends to tasks and gets back
- `row_planner`: the common part of planners that assign rows to workers
- `sample`, `cost`: what a plan is computed from, and how plans are compared
- `boolean`, `nearest`, `relevant`: the partitioning methods of each kind
- `route`: which workers receive an object
- `rebalance`: change the plan when loads drift apart
- `kernels`: the compiled parts
"""
