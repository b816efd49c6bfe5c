"""The Python API: run a log or a list of events, query a state, explain a match."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.batch.resize import read_workers
from placewire.explainer.explain import explain as explain_pair
from placewire.ingest.log import check_growth, check_lines, identify_log
from placewire.ingest.sources import LogSource
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.events import deep_recursion
from placewire.model.kinds import check_buffer
from placewire.model.settings import Settings, check_settings
from placewire.model.times import parse_duration
from placewire.plans.rebalance.rebalancer import read_rebalance
from placewire.queries.snapshot import Snapshot
from placewire.sinks.files import FileSink
from placewire.status import open_state
from placewire.storage.filesystem import as_uri
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Counters, Manifest

BATCH_ROWS = 200_000


class Results(NamedTuple):
    """The results of a log in order, its dead letters by seq, and totals."""

    results: list[dict[str, Any]]
    dead_letters: list[dict[str, Any]]
    totals: Counters


def run(events: Iterable[dict[str, Any] | str | bytes], **options: Any) -> Results:
    """Run events (dicts, or lines of JSON) in this process; options are those of `replay`."""
    with tempfile.TemporaryDirectory(prefix="placewire-") as folder:
        log, results, dead = (Path(folder) / name for name in ("log", "results", "dead"))
        with open(log, "wb") as file:
            for event in events:
                if isinstance(event, dict):
                    file.write(msgspec.json.encode(event))
                else:
                    file.write(event.encode("utf-8") if isinstance(event, str) else event)
                file.write(b"\n")
        totals = replay(log, results, dead_letters=dead, **options)
        return Results(read_lines(results), read_lines(dead), totals)


def open_snapshot(state: Path | str) -> Snapshot:
    """Open the retained objects of a state directory for queries; raises Unusable.

    The state may be in use: a snapshot reads one commit, and `refresh` moves to the latest.
    """
    return Snapshot(Path(state))


def explain(
    object: dict[str, Any] | int | str,
    subscription: dict[str, Any] | str,
    state: Path | str | None = None,
    settings: Settings | dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Explain why an object did or did not match a subscription: verdict, reasons and cost.

    The object is a dict, or a seq or id that the state retains; the subscription is a dict, or an
    id of the state. Without a state you can give `settings`, as for `replay`.
    docs/how-to/explain.md describes the result. Raises InvalidEvent or Unusable.
    """
    place = None if state is None else open_state(Path(state))
    return explain_pair(
        place, object, subscription, None if settings is None else check_settings(settings)
    )


def replay(
    log: Path | str,
    results: Path | str,
    *,
    dead_letters: Path | str | None = None,
    settings: Settings | dict[str, Any] | None = None,
    workers: int | str | None = None,
    plan: str = "shared",
    batch_rows: int = BATCH_ROWS,
    state: Path | str | None = None,
    with_data: bool = False,
    slice: str | None = None,
    archive: Path | str | None = None,
    buffer: str = "cskyband",
    rebalance: str = "auto",
    machines: int | None = None,
    session: Any = None,
    begun: Callable[[Manifest], None] | None = None,
    after: Callable[[Manifest], None] | None = None,
) -> Counters:
    """Run an event log and write its results in order; returns the totals.

    With a Spark `session`, or a function that returns one, the log runs on Spark, otherwise in
    this process. `settings` is a Settings or a dict with the names of a settings file. `workers`
    defaults to that of a saved plan, or 1; "2..8" scales with the load. With `state` a stopped run
    resumes where it left off. Retained objects are stored in files of `slice`, as "PT1H"; objects
    that are no longer retained go to the folder `archive`, if given, as Parquet by day. `buffer` is
    how `relevant` subscriptions buffer objects beyond their k best: cskyband, skyband or kmax.
    `rebalance` is how a plan is adjusted when the loads of workers drift apart: auto, ps2-local,
    ps2-global, sstd, tornado or off. `machines` is the number of machines of the workers, for plan
    `auto`; it defaults to those of the session, or 1. `begun` is called with the last commit,
    `after` after each further batch. Raises `placewire.Unusable`.
    """
    path = Path(log)
    check_lines(path)
    span = None if workers is None else read_workers(workers)
    numbers = {"batch_rows": batch_rows, "machines": machines}
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise Unusable(f"{name}: must be 1 or more, got {number}")
    checked = check_settings(settings)
    with state_directory(state) as root:
        coordinator = Coordinator(
            StateDir(root),
            checked,
            identify_log(path),
            plan,
            span if span is None or span.most > span.least else span.least,
            slice_us=None if slice is None else read_slice(slice),
            archive=archive,
            buffer=check_buffer(buffer),
            rebalance=read_rebalance(rebalance),
        )
        try:
            sink = FileSink(coordinator.state, with_data)
            check_growth(path, coordinator.latest.offset)
            sink.deliver(coordinator.latest)
            if begun is not None:
                begun(coordinator.latest)

            def deliver(manifest: Manifest) -> None:
                sink.deliver(manifest)
                coordinator.delivered = manifest.batch
                if after is not None:
                    after(manifest)

            if machines is not None:
                coordinator.planners.set_machines(lambda: machines)
            if path.stat().st_size and session is not None:
                # Imported here: running in this process needs no Spark.
                from placewire.spark.session import count_machines
                from placewire.spark.stages import replay_on_spark

                if callable(session):
                    session = session()
                if machines is None:
                    coordinator.planners.set_machines(partial(count_machines, session))
                replay_on_spark(
                    session,
                    coordinator,
                    LogSource(str(path)),
                    batch_rows=batch_rows,
                    after=deliver,
                )
            else:
                for manifest in replay_log(coordinator, LogSource(str(path)), batch_rows):
                    deliver(manifest)
            sink.copy_out(Path(results), None if dead_letters is None else Path(dead_letters))
            return coordinator.latest.counters
        finally:
            coordinator.close()


def read_slice(text: str) -> int:
    """Read the length of slices; raises Unusable."""
    try:
        return parse_duration(text)
    except InvalidEvent as error:
        raise Unusable(f"slice: {error}") from None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a JSON Lines file."""
    with open(path, "rb") as file, deep_recursion():
        return [json.loads(line) for line in file]


@contextlib.contextmanager
def state_directory(given: Path | str | None) -> Iterator[Path]:
    """Return the given state directory, or a temporary one."""
    if given is not None:
        if as_uri(given) is not None:
            raise Unusable(f"state {given}: replay keeps its state in a directory of this machine")
        yield Path(given).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="placewire-") as folder:
        yield Path(folder) / "state"
