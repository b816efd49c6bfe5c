"""Explain why an object did or did not match a subscription, with the engine's own code.

Each kind adds its reasons in `kinds/*/explain.py`.

- `explain`: the whole explanation
- `context`: the settings and the commit that it is based on
- `object`, `subscription`: the two sides of the pair, given as JSON or found in the state
- `lifetime`, `history`: whether the subscription was live at the object
- `cost`: the postings that the object met
- `plan`: the leaf and worker of the pair
- `verdict`: the explanation in one sentence
"""
