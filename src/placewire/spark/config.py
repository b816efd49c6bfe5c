"""The configuration of `placewire run`: sources, sinks and options, from a TOML file.

Errors name their place in the file and are raised before anything starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from placewire.model.errors import Unusable
from placewire.model.settings import Settings, check_settings, read_settings, read_toml
from placewire.storage.filesystem import without_secrets

NAME = re.compile(r"[\w][\w.-]*")
EVERY = re.compile(r"\d+ (milli|micro)?(second|minute|hour|day)s?")
SOURCE_FORMATS = ("jsonl", "parquet", "csv", "kafka", "delta")
SINK_FORMATS = (*SOURCE_FORMATS, "stdout")


class SourceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A source of events.

    `takes` is what it contains. With `schema`, in Spark DDL, lines of JSON become columns;
    `columns` maps field names to columns.
    """

    takes: Literal["events", "objects", "subscriptions"]
    format: str
    path: str | None = None
    topic: str | None = None
    servers: str | None = None
    schema: str | None = None
    columns: dict[str, str] = {}
    options: dict[str, str] = {}
    rows: int = 200_000  # at most in a batch, if the source supports a limit


class SinkConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A sink of results or dead letters."""

    name: str
    format: str
    takes: Literal["results", "dead"] = "results"
    path: str | None = None
    topic: str | None = None
    servers: str | None = None
    options: dict[str, str] = {}


class RunConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole configuration file."""

    state: str
    source: list[SourceConfig]
    sink: list[SinkConfig] = []
    settings: str | dict[str, Any] | None = None
    plan: str = "shared"
    workers: int | str | None = None
    rebalance: str = "auto"
    batch_rows: int = 200_000
    with_data: bool = False
    buffer: str = "cskyband"
    archive: str | None = None
    cache: str | None = None  # of the files of a state in an object store
    cache_gb: float = 20.0
    every: str = "0 seconds"
    master: str | None = None
    spark: dict[str, str] = {}
    packages: list[str] = []


def read_config(path: Path) -> RunConfig:
    """Read a configuration; its paths are relative to its folder. Raises Unusable."""
    try:
        config = msgspec.convert(read_toml(path, f"config {path}"), RunConfig)
    except msgspec.ValidationError as error:
        said = str(error).replace("Object", "Table").replace("`$.", "`").replace("`$", "`the file")
        raise Unusable(f"config {path}: {said}") from None
    if not config.source:
        raise Unusable(f"config {path}: needs a [[source]], got none")
    for number, source in enumerate(config.source):
        label = f"config {path}: source {number + 1} ({source.format})"
        check_location(label, SOURCE_FORMATS, source)
        check_source(label, source)
    for number, sink in enumerate(config.sink):
        label = f"config {path}: sink {number + 1} ({sink.format})"
        check_location(label, SINK_FORMATS, sink)
        if not NAME.fullmatch(sink.name):
            raise Unusable(
                f"{label}: name must be letters, digits, '.', '_' and '-', got {sink.name!r}"
            )
    if not EVERY.fullmatch(config.every):
        raise Unusable(f"config {path}: every must be as '5 seconds', got {config.every!r}")
    if not config.cache_gb > 0:
        raise Unusable(f"config {path}: cache_gb must be greater than 0, got {config.cache_gb:g}")
    placed = resolve_paths(config, path.absolute().parent)
    check_distinct(path, placed)
    return placed


def check_source(label: str, source: SourceConfig) -> None:
    """Check the options of one source; raises Unusable."""
    if source.rows < 1:
        raise Unusable(f"{label}: rows must be 1 or more, got {source.rows}")
    if source.columns and source.schema is None and source.format in ("jsonl", "kafka"):
        raise Unusable(f"{label}: columns needs schema, without which lines are whole events")
    if source.schema is not None and source.format == "delta":
        raise Unusable(f"{label}: has no schema, since a table has its own")
    for name in ("maxFilesPerTrigger", "maxOffsetsPerTrigger"):
        value = source.options.get(name, "1")
        if not value.isdecimal() or int(value) < 1:
            raise Unusable(f"{label}: option {name} must be 1 or more, got {value!r}")


def check_distinct(path: Path, config: RunConfig) -> None:
    """Check that no sinks share a name, nor sinks and sources a folder; raises Unusable."""
    names: set[str] = set()
    taken = {one.path: f"source {number + 1}" for number, one in enumerate(config.source)}
    for sink in config.sink:
        if sink.name in names:
            raise Unusable(f"config {path}: two sinks are named {sink.name!r}")
        names.add(sink.name)
        if sink.path is not None and sink.path in taken:
            raise Unusable(f"config {path}: sink {sink.name}: has the path of {taken[sink.path]}")
        taken[sink.path] = f"sink {sink.name}"


def check_location(label: str, known: Sequence[str], one: SourceConfig | SinkConfig) -> None:
    """Check the format and that its location is given; raises Unusable."""
    if one.format not in known:
        raise Unusable(f"{label}: format must be one of {', '.join(known)}, got {one.format!r}")
    needs = {"kafka": ("topic", "servers"), "stdout": ()}.get(one.format, ("path",))
    for name in needs:
        if getattr(one, name) is None:
            raise Unusable(f"{label}: needs {name}, got none")
    for name in {"path", "topic", "servers"} - set(needs):
        given = getattr(one, name)
        if given is not None:
            raise Unusable(f"{label}: has no {name}, got {without_secrets(given)!r}")


def resolve_paths(config: RunConfig, folder: Path) -> RunConfig:
    """Make paths absolute, except URIs."""

    def whole(path: str | None) -> str | None:
        return path if path is None or "://" in path else os.path.normpath(folder / path)

    def placed(one: Any) -> Any:
        return msgspec.structs.replace(one, path=whole(one.path))

    settings = config.settings
    return msgspec.structs.replace(
        config,
        state=str(whole(config.state)),
        cache=whole(config.cache),
        source=[placed(one) for one in config.source],
        sink=[placed(one) for one in config.sink],
        archive=whole(config.archive),
        settings=whole(settings) if isinstance(settings, str) else settings,
    )


def read_run_settings(config: RunConfig) -> Settings:
    """Read the settings that change results; raises Unusable."""
    if isinstance(config.settings, str):
        return read_settings(Path(config.settings))
    return check_settings(config.settings)
