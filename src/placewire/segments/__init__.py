"""Store subscriptions in segments: immutable files of rows of one kind, with an index.

This package knows kinds only through their protocol (`model/kinds.py`).

- `segment`: build, write and map a segment
- `live_segment`, `live`: the segments of the next manifest, with ended rows and current results
- `changes`: which row each change of a batch replaces or ends, also when one batch uses an id twice
- `thresholds`: the current thresholds of ranked rows, as workers use them
- `compaction`: choose and merge segments, and rewrite them for another plan
- `counts`: count live subscriptions
"""
