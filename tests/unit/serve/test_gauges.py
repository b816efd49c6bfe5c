"""Rates over the last seconds, correct from the first second on."""

from __future__ import annotations

import time

import pytest

from placewire.serve.metrics import RateMeter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set."""
    now = [1000.6]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_rate_is_right_before_its_span_is_full(clock: list[float]) -> None:
    rate = RateMeter()
    assert rate.per_s() == 0.0
    clock[0] += 7  # before anything came
    begun = clock[0]
    for tick in range(1, 81):
        rate.add(75)
        clock[0] = begun + tick / 4
        if tick >= 8:
            assert rate.per_s() == pytest.approx(300, rel=0.04), tick
    assert rate.total == 80 * 75
    clock[0] += 11
    assert rate.per_s() == 0.0
