"""Detect load that drifts apart, and adjust plans, assignments and the number of workers.

- tally: what a worker counts in a batch
- signals: recent counts of all workers, and the rows that they hold
- rebalancer: whether to adjust the plan, and which adjustment pays most
- ps2, sstd, tornado: the adjustments of three published systems
- adjustment: what they share: leaves with loads, and an adjusted plan
- change: the next plan, from decision to switch, and the previous plan beside it
- prefetch: postings that a worker reads before it gets them
- elastic: the number of workers
"""
