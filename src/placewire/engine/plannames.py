"""Plans by name: one for each kind of subscription, from what the user typed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from placewire.model.errors import Unusable
from placewire.plan.methods import METHODS
from placewire.plan.nearest import NEAREST_METHODS

UNPLANNED = ("shared", "scan")  # plans that no sample is needed for
EVERY_KIND = (*UNPLANNED, "auto")
PLANS = {
    "boolean": (*EVERY_KIND, *METHODS),
    "nearest": (*EVERY_KIND, *NEAREST_METHODS, "sstd"),
}


class PlanNames(NamedTuple):
    """The plan of each kind; that of boolean subscriptions may be a file's name."""

    boolean: str = "shared"
    nearest: str = "shared"


def parse_plans(text: str) -> PlanNames:
    """`kdt`, `auto`, `nearest=dkm,boolean=kdt`, or a file; raises Unusable.

    A name alone is for the kinds that have such a plan; the others stay where they are read.
    """
    if "=" in text and not Path(text).is_file():
        names = PlanNames()
        for part in text.split(","):
            kind, _, name = part.partition("=")
            if kind not in PLANS:
                raise Unusable(f"plan: a kind must be one of {', '.join(PLANS)}, got {kind!r}")
            check_name(kind, name)
            names = names._replace(**{kind: name})
        return names
    if text in EVERY_KIND:
        return PlanNames(text, text)
    if text in PLANS["nearest"]:
        return PlanNames(nearest=text)
    check_name("boolean", text)
    return PlanNames(boolean=text)


def check_name(kind: str, name: str) -> None:
    """Raise Unusable unless the kind has such a plan."""
    if name in PLANS[kind] or (kind == "boolean" and Path(name).is_file()):
        return
    if kind == "boolean" and (Path(name).suffix or Path(name).exists()):
        raise Unusable(f"plan {name}: is no file that can be read")
    known = dict.fromkeys((*PLANS[kind], *(PLANS["nearest"] if kind == "boolean" else ())))
    ending = " or a file" if kind == "boolean" else ""
    raise Unusable(f"plan: must be one of {', '.join(known)}{ending}, got {name!r}")
