"""Plans for `nearest` subscriptions: assign each subscription to a worker.

- `planner`: the plan in force
- `methods`: all methods by name
- `dkm`: the method of DkM-SKS
- `assignment`: an assignment, and the rule for new subscriptions
- `new_rows`: assign new subscriptions
- `sample`, `counts`: circles and objects that the methods use
- `choice`: compare plans by cost, for the plan `auto`
- `baselines`: methods that exist for comparison
"""
