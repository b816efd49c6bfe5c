"""Plans that assign each posting of a `relevant` subscription to a worker.

- strategy: how postings are assigned, routed to and rebalanced
- methods: the methods by name, which cut places, terms or both
"""
