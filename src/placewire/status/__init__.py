"""Report the status of a state directory, read without a lock.

- `status`: plans, workers, load per leaf, subscriptions, lag
- `plan_facts`: the plan in force as JSON, for the live map
"""
