"""Snapshot queries: answer them from retained objects, within a batch or from a state directory."""
