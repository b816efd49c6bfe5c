"""Partition subscriptions and objects among workers, and balance the load.

A plan is made from a sample of the log by a method chosen by name or by cost (`cost`). `boolean`
plans divide space and terms into leaves. Plans of `nearest` and `relevant` partition rows among
workers: `row_planner` decides when, and a strategy for each kind decides how. `route` sends objects
to the workers that need them, and `rebalance` adjusts a plan when the load drifts.
"""
