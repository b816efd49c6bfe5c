"""Explain why an object did or did not match a subscription, by the code that matches them.

Each kind adds its reasons in `kinds/*/explain.py`. The package is not named `explain` because
`placewire.explain` is a public function, which a package of that name would replace.

- `explain`: whether the subscription was live, the whole explanation, and its verdict
- `context`: the settings and the commit that it is based on
- `object`, `subscription`: the two sides of the pair, given as JSON or found in the state
- `search`: the postings of the subscription, the work of matching the object, leaf and workers
"""
