"""Plans for `relevant` subscriptions: assign their postings to workers.

- `planner`: the plan in force
- `methods`: all methods by name
- `parts`: divide points and terms into parts of equal work
- `level`: move postings when measured loads differ
- `choice`: compare plans by cost, for the plan `auto`
"""
