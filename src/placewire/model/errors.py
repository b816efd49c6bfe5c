"""The errors of invalid events and of unusable files, settings or states."""

from __future__ import annotations


class InvalidEvent(ValueError):
    """One event is invalid: it becomes a dead letter and has no other effect.

    The message says what is wrong, where, and what was given: `k must be 1..1000, got 0`.
    """


class Unusable(Exception):
    """A file, a setting or a state directory cannot be used; the command ends with exit code 2."""
