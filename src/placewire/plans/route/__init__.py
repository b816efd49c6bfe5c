"""Route objects to the workers that must see them, and choose what each worker probes.

- leaf_route: what a route does; routes by the leaves of a plan, and plan files
- live_terms: the terms that live subscriptions ask for in each scope
- worker_map: routes by a map of the rows that each worker holds
"""
