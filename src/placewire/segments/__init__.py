"""Subscriptions on disk and in memory, in immutable segments of one kind each.

Unsubscribing adds a tombstone; compaction merges segments and drops ended rows. Kinds are known
only through their protocol, `placewire.model.kinds`.
"""
