"""Placewire: match geo-tagged text against millions of standing subscriptions.

Packages are named by capability. Each layer imports only those before it:
model, kernels, text, storage, ingest, segments, objects, kinds, queries, plans, batch, sinks,
status, explain, spark, api, serve, cli. Beside them are demo (generate logs), importers (translate
queries of other systems) and warm (compile kernels ahead of time).

Each package's docstring says which module to open for what. `docs/architecture.md` follows one
object and one subscription through the code.
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
