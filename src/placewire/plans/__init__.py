"""Partition subscriptions and objects among workers, and balance the load.

A plan is made from a sample of the log by a method chosen by name or by cost. `boolean` plans
divide space and terms into leaves. Plans of `nearest` and `relevant` partition rows among workers:
`row_planner` decides when, and a strategy for each kind decides how.

- planners: the plans of all kinds, and what the coordinator asks of them
- names: the plans that can be chosen, by kind
- row_planner: the planner of a kind whose rows are partitioned, and the strategy it adds
- leaves: a plan as data, leaves that tile the world
- allocation: costs assigned to workers, and handed over
- messages: what coordinator and tasks tell each other
- sample/: objects, subscriptions and queries that plans are made from
- cost/: cost models, and the choice of a plan by cost
- boolean/, nearest/, relevant/: the methods of each kind
- route/: which workers receive an object
- rebalance/: plans changed when the load drifts
- kernels/: compiled loops of all of these
"""
