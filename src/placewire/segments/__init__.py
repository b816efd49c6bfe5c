"""Subscriptions on disk and in memory, in immutable segments of one kind each.

Unsubscribing adds a tombstone; compaction merges segments and drops ended rows. Kinds are known
only through their protocol, `placewire.model.kinds`.

- `segment`: an immutable segment, its id directory and its file
- `live_segment`: a segment with its tombstones and the results of its rows
- `live`: all live segments of a state
- `changes`: resolve the subscribes and unsubscribes of a batch by id
- `compaction`: merge segments, large ones in the background
- `thresholds`: the thresholds of rows as tasks see them
"""
