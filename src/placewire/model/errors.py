"""The two ways in which input can be wrong: one event, or a whole run."""

from __future__ import annotations


class InvalidEvent(ValueError):
    """One event is invalid; it goes to the dead letters and nothing else happens.

    The message says what is wrong, where and what was got: `k must be 1..1000, got 0`.
    """


class Unusable(Exception):
    """A file, a setting or a state directory cannot be used; the command ends with exit code 2."""
