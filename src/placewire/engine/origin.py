"""Where a state began: its first manifest, and the log and settings that it belongs to."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from placewire.engine.log import Offset
from placewire.engine.planning import named_plan
from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest


def first_manifest(settings: Settings, plan: str) -> Manifest:
    """The state before the first batch, with a fresh key for hashes or that of a saved plan."""
    saved = named_plan(plan)
    return Manifest(
        batch=-1,
        epoch=0,
        key=saved.key if saved else (secrets.randbits(64), secrets.randbits(64)),
        settings=settings._asdict(),
        source="",
        offset=Offset()._asdict(),
        next_seq=0,
        now_us=None,
    )


def check_same(
    state: StateDir, latest: Manifest, settings: Settings, source: Callable[[Offset], str]
) -> None:
    """A state belongs to one log and one set of settings."""
    changed = sorted(
        {
            re.sub("_(us|count|digest)$", "", name)
            for name, value in settings._asdict().items()
            if latest.settings.get(name) != value and name != "lexicon"
        }
    )
    if changed:
        raise Unusable(f"state {state}: was made with other settings: {', '.join(changed)}")
    if latest.batch >= 0 and latest.source != source(Offset(**latest.offset)):
        raise Unusable(f"state {state}: was made from another log")
