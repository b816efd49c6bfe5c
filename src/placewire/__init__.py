"""Placewire: match geo-tagged text against millions of standing subscriptions.

Packages are named by capability. Each layer imports only those before it:
model, kernels, text, storage, ingest, segments, objects, kinds, queries, plans, batch, sinks,
status, explainer, spark, api, serve, cli. Apart from them, demo generates logs, importers translate
queries of other systems, and warm compiles kernels ahead of time.

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
    from placewire.sinks.delta import DeltaSink
    from placewire.sinks.files import FolderSink
    from placewire.spark.datasource import read_delta, register
    from placewire.spark.kafka import KafkaSink, read_kafka
    from placewire.spark.match import match, refused_objects
    from placewire.spark.stream import CallSink, Stream

__all__ = [
    "CallSink",
    "Client",
    "DeltaSink",
    "FolderSink",
    "InvalidEvent",
    "KafkaSink",
    "Results",
    "Settings",
    "Snapshot",
    "Stream",
    "Unusable",
    "connect",
    "explain",
    "match",
    "open_snapshot",
    "read_delta",
    "read_kafka",
    "refused_objects",
    "register",
    "replay",
    "run",
]

_HOMES = {
    "CallSink": "placewire.spark.stream",
    "DeltaSink": "placewire.sinks.delta",
    "FolderSink": "placewire.sinks.files",
    "KafkaSink": "placewire.spark.kafka",
    "read_delta": "placewire.spark.datasource",
    "read_kafka": "placewire.spark.kafka",
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
