"""Detect load that drifts apart, and adjust plans and assignments.

- signals: what a worker counts in a batch, recent counts of all workers, and the rows they hold
- rebalancer: whether to adjust the plan, and which adjustment pays most
- ps2, sstd, tornado: the adjustments of three published systems
- adjustment: what they share: leaves with loads, and an adjusted plan
- change: the next plan, from decision to switch; the previous plan; prefetched postings
"""
