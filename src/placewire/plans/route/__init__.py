"""Routes: which workers receive an object, and which of its terms each of them probes.

- `protocol`: the protocol of a route, and its null implementation
- `leaf_route`: route by the leaves of a plan
- `live_terms`: which terms have live subscriptions, by leaf
- `radius_route`: route to workers with `nearest` subscriptions, by their circles
- `term_route`: route to workers with `relevant` subscriptions, by their terms
- `placement`: the one part of a plan that keeps a retained object
"""
