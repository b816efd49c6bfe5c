"""The methods that divide `nearest` subscriptions among workers, by name."""

from __future__ import annotations

from collections.abc import Callable

from placewire.plan.assignment import (
    Assignment,
    Rule,
    arrays_to_rule,
    release,
    rule_to_arrays,
)
from placewire.plan.balls import BallSample
from placewire.plan.dkm import plan_dkm
from placewire.plan.kop import plan_kop
from placewire.plan.newcomers import assign_new
from placewire.plan.ps2near import plan_ps2near
from placewire.plan.sop import plan_sop

__all__ = [
    "NEAREST_METHODS",
    "Assignment",
    "BallSample",
    "Rule",
    "arrays_to_rule",
    "assign_new",
    "release",
    "rule_to_arrays",
]

NEAREST_METHODS: dict[str, Callable[[BallSample, int], Assignment]] = {
    "kop": plan_kop,
    "sop": plan_sop,
    "dkm": plan_dkm,
    "ps2": plan_ps2near,
}
