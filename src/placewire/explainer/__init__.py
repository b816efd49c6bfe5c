"""Explain why an object did or did not match a subscription, by the code that matches them.

Each kind adds its reasons in `kinds/*/explain.py`. The package is not named `explain` because
`placewire.explain` is a public function, which a package of that name would replace.

- `explain`: the whole explanation
- `context`: the settings and the commit that it is based on
- `object`, `subscription`: the two sides of the pair, given as JSON or found in the state
- `lifetime`, `history`: whether the subscription was live at the object
- `cost`: the work of matching the object, and the postings of the subscription
- `plan`: the leaf and worker of the pair
- `verdict`: the explanation in one sentence
"""
