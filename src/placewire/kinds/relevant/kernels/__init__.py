"""Compiled parts of the kind `relevant`.

- `groups`: build groups of postings with score bounds
- `match`: the pairs of a block that may reach their threshold
- `score`: the score of an object for a row
- `buffers`: insert objects into buffers and remove them, by rank
- `window`: slide the window past rows, and write their updates
"""
