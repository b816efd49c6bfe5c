"""The kinds of subscription, one package each, with the same module names for the same roles.

`kind` implements the protocol of `model/kinds.py`; the registry there imports a package when its
kind is first used. A new kind is a new package and one line in the registry; see
`docs/adding-a-kind.md`.

- `boolean`, `nearest`, `relevant`, `trending`: the kinds
- `candidates`: input and output of matching
- `shard`: input and output of settling, and portions of rows on several cores
- `object_ids`: ids of the objects in results, so that an update can name a dropped object
- `explanation`: facts and phrases of explanations that several kinds share
"""
