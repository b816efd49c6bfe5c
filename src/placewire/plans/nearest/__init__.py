"""Plans that assign each `nearest` subscription to a worker.

- strategy: how rows are assigned, routed to and rebalanced
- methods: `kop` and `dkm`, and new rows under every method
- baselines: `sop` and `ps2`, for comparison
- assignment: an assignment, and the rule by which new rows join it
- sample: circles of subscriptions, and counts of objects by place and term
"""
