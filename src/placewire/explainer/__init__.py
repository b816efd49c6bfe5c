"""Explain why an object did or did not match a subscription.

`explain` reads the pair from JSON or from a state directory, judges whether the subscription was
live, lets its kind test place and words, counts what matching cost, and sums it up in a sentence.
The package is not named `explain` because `placewire.explain` is a public function.
"""
