"""Hypothesis profiles: `quick` repeats the same few examples, `thorough` explores many at random.

PLACEWIRE_TESTS selects one. `quick` is the default, and the same checkout always runs the same
examples. `thorough` prints a line that reproduces a failure.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

PROFILE = os.environ.get("PLACEWIRE_TESTS", "quick")
SHARES = {"quick": 0.2, "thorough": 1.0}


def examples(count: int) -> int:
    """Scale a test's number of examples to the profile; a test without its own has 100."""
    return max(2, round(count * SHARES[PROFILE]))


def load_profile() -> None:
    """Register both profiles and load the selected one."""
    if PROFILE not in SHARES:
        raise SystemExit(f"PLACEWIRE_TESTS must be quick or thorough, got {PROFILE!r}")
    slow = [HealthCheck.too_slow]  # a loaded machine is slow, and no test is wrong for it
    settings.register_profile(
        "quick",
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=examples(100),
        suppress_health_check=slow,
    )
    settings.register_profile(
        "thorough",
        print_blob=True,
        deadline=None,
        max_examples=examples(100),
        suppress_health_check=slow,
    )
    settings.load_profile(PROFILE)
    if PROFILE == "quick":
        # Hypothesis draws constants from the modules that are loaded, which depends on the tests
        # that ran before in the same process.
        providers._get_local_constants = lambda: providers._local_constants
