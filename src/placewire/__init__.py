"""Placewire: a wire service for places.

People say where and which words; Placewire tells them, the moment it happens, of every geo-tagged
text that fits. The rooms of the house stand in the order in which data walks through them: model,
kernels, text, index, plan, route, state, engine, spark, cli. `docs/architecture.md` tells the walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placewire.api import Results, explain, open_snapshot, replay, run
    from placewire.model.errors import InvalidEvent, Unusable
    from placewire.model.settings import Settings
    from placewire.queries.snapshot import Snapshot
    from placewire.serve.client import Client, connect
    from placewire.spark.datasource import register
    from placewire.spark.match import match, refused_objects
    from placewire.spark.stream import Stream

__all__ = [
    "Client",
    "InvalidEvent",
    "Results",
    "Settings",
    "Snapshot",
    "Stream",
    "Unusable",
    "connect",
    "explain",
    "match",
    "open_snapshot",
    "refused_objects",
    "register",
    "replay",
    "run",
]

_HOMES = {
    "Client": "placewire.serve.client",
    "connect": "placewire.serve.client",
    "Results": "placewire.api",
    "explain": "placewire.api",
    "open_snapshot": "placewire.api",
    "replay": "placewire.api",
    "run": "placewire.api",
    "Settings": "placewire.model.settings",
    "InvalidEvent": "placewire.model.errors",
    "Snapshot": "placewire.queries.snapshot",
    "Stream": "placewire.spark.stream",
    "match": "placewire.spark.match",
    "refused_objects": "placewire.spark.match",
    "register": "placewire.spark.datasource",
    "Unusable": "placewire.model.errors",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for.

    Spark starts Python processes that import this package only to plan a batch; loading the
    compiler in each of them would cost more than the batch.
    """
    from importlib import import_module
    from importlib.metadata import version

    if name == "__version__":
        return version("placewire")
    if name not in _HOMES:
        raise AttributeError(f"module 'placewire' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
