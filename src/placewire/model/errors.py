"""The errors of invalid events and of unusable files, settings or states."""

from __future__ import annotations


class InvalidEvent(ValueError):
    """One event is invalid: it becomes a dead letter and has no other effect.

    The message says what is wrong, where, and what was given: `k must be 1..1000, got 0`.
    """


class Unusable(Exception):
    """A file, a setting or a state directory cannot be used; the command ends with exit code 2."""


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its type if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def one_line(error: Exception) -> str:
    """Return an error's message with its lines joined, or its type if it has none."""
    return " ".join(str(error).split()) or type(error).__name__
