"""The names of plans, and the plan of each kind from a `--plan` option."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from placewire.model.errors import Unusable
from placewire.plans.boolean.methods import METHODS
from placewire.plans.nearest.methods import NEAREST_METHODS
from placewire.plans.relevant.methods import RELEVANT_METHODS
from placewire.plans.route.leaf_route import SavedPlan, read_plan

UNPLANNED = ("shared", "scan")  # need no sample
EVERY_KIND = (*UNPLANNED, "auto")
PLANS = {
    "boolean": (*EVERY_KIND, *METHODS),
    "nearest": (*EVERY_KIND, *NEAREST_METHODS, "sstd"),
    "relevant": (*EVERY_KIND, *RELEVANT_METHODS),
}


LEAF_METHODS = tuple(METHODS)
LEAF_PLANS = PLANS["boolean"]


class PlanNames(NamedTuple):
    """The plan of each kind."""

    boolean: str = "shared"
    nearest: str = "shared"
    relevant: str = "shared"

    @property
    def leaf(self) -> str:
        """The plan with leaves, which divides space and terms; it may be a file's name."""
        return self.boolean


def parse_plans(text: str) -> PlanNames:
    """`kdt`, `auto`, `nearest=dkm,boolean=kdt`, or a file; raises Unusable.

    A name alone applies to the kinds that have such a plan; the others match in place.
    """
    if "=" in text and not is_file(text):
        named: dict[str, str] = {}
        for part in text.split(","):
            kind, equals, name = (word.strip() for word in part.partition("="))
            if not equals:
                raise Unusable(f"plan: each part must be KIND=NAME, got {part!r}")
            if kind not in PLANS:
                raise Unusable(f"plan: a kind must be one of {', '.join(PLANS)}, got {kind!r}")
            if kind in named:
                raise Unusable(f"plan: {kind} must have one plan, got {named[kind]!r} and {name!r}")
            check_name(kind, name)
            named[kind] = name
        return PlanNames(**named)
    if text in EVERY_KIND:
        return PlanNames(text, text, text)
    if text in PLANS["nearest"]:
        return PlanNames(nearest=text)
    if text in PLANS["relevant"]:
        return PlanNames(relevant=text)
    check_name("boolean", text, alone=True)
    return PlanNames(boolean=text)


def named_plan(name: str) -> SavedPlan | None:
    """The plan in the file `name`; None if that is a method or no file."""
    return read_plan(Path(name)) if name not in LEAF_PLANS and is_file(name) else None


def is_file(name: str) -> bool:
    """Whether `name` is the path of a file; false for strings that cannot be one."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def check_name(kind: str, name: str, alone: bool = False) -> None:
    """Raise Unusable unless the kind has such a plan; a name `alone` may be of any kind."""
    files = kind == "boolean"
    if name in PLANS[kind] or (files and is_file(name)):
        return
    if files and Path(name).suffix:
        raise Unusable(f"plan {name}: is no file that can be read")
    others = (*PLANS["nearest"], *PLANS["relevant"]) if alone else ()
    known = dict.fromkeys((*PLANS[kind], *others))
    of_kind = "" if alone else f" of {kind} subscriptions"
    raise Unusable(
        f"plan{of_kind}: must be one of {', '.join(known)}{' or a file' if files else ''},"
        f" got {name!r}"
    )
