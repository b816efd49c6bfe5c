"""Compile every kernel of the pipeline ahead of its first use.

A small log exercises every path of a large one: all regions, expressions and changes, ended rows,
merged segments, reports, queries, a sliding window, a resumed run. `python -m placewire.warm`
compiles each kind in a separate process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from placewire.batch.coordinator import Coordinator
from placewire.batch.dispatch import dispatch_block
from placewire.batch.match import match_routed
from placewire.ingest.log import BlockRef, batch_end, identify_log, plan_batch
from placewire.kernels.cache import KernelCache, cache_directory, watching_compiler
from placewire.model.kinds import kind_named, kind_names
from placewire.model.settings import Settings
from placewire.objects.score_layers import build_page_layers
from placewire.objects.sections import open_sections
from placewire.plans.messages import BatchContext, Ran
from placewire.plans.planners import LEAF_PLAN
from placewire.plans.rebalance.change import WORLD, touch
from placewire.segments.segment import open_segment
from placewire.sinks.outbox import dead_letter_lines, result_lines
from placewire.storage.layout import StateDir
from placewire.storage.manifest import read_latest

ROUNDS = 5  # the fourth batch merges segments, the fifth matches with the merged one
MORE_ROUNDS = 2
WINDOW = 9  # objects, two rounds and one: the best ones leave two batches later
DEFAULT_SETTINGS = Settings()
STOP_WORD = "the"
LEXICON = b'{"documents":2,"df":{"coffee":1}}'


def warm_kernels(
    plan: str = "shared", run: Settings = DEFAULT_SETTINGS, kinds: Sequence[str] = ()
) -> None:
    """Compile and cache the kernels of a run under `plan`, or load them from the cache.

    Only the analyzer of the settings matters to kernels. `kinds` are the kinds to compile for, by
    default all.
    """
    names = tuple(kinds) or kind_names()
    with tempfile.TemporaryDirectory(prefix="placewire-warming-") as folder:
        log = Path(folder) / "log.jsonl"
        state = StateDir(Path(folder) / "state")
        lexicon = Path(folder) / "lexicon.json"
        lexicon.write_bytes(LEXICON)
        settings = Settings(
            analyzer=run.analyzer,
            stop_words=STOP_WORD if run.stop_words else None,
            lexicon=str(lexicon),
            window_count=WINDOW,
        )
        # The log grows in between: a resumed run maps arrays instead of making them.
        for rounds in (ROUNDS, ROUNDS + MORE_ROUNDS):
            log.write_bytes(b"".join(make_round(number, names) for number in range(rounds)))
            run_rounds(state, settings, log, plan, make_round(0, names).count(b"\n"))
        manifest = read_latest(state)
        assert manifest is not None
        for section in open_sections(state, manifest.store):
            build_page_layers(section.retained)  # too small to get layers otherwise
        divided = kind_named(LEAF_PLAN).number
        for entry in manifest.segments:
            if entry.kind == divided and plan != "shared":  # its plan may be adjusted
                touch(*WORLD, [open_segment(state.file(entry.name))])


def make_round(number: int, names: Sequence[str]) -> bytes:
    """Make events of every type: subscriptions to some kinds, objects, queries, a dead letter."""
    ts = f"2026-03-01T12:{number:02d}:00Z"
    kinds = [(kind_named(name), kind_named(name).samples(number)) for name in names]
    wanted = [{"kind": kind.name, **one} for kind, some in kinds for one in some.subscriptions]
    asked = [{"kind": kind.name, **one} for kind, some in kinds for one in some.queries]
    lines: list[dict[str, Any]] = [
        {"type": "subscribe", "id": f"{number}-{i}", "ts": ts, **one}
        for i, one in enumerate(wanted)
    ]
    # Each round is nearer than the last, so that results both add and drop objects.
    point = {"ts": ts, "lon": 0.5 - number / 100, "lat": 0.5}
    lines += [
        {"type": "unsubscribe", "id": f"{number - 1}-0", "ts": ts},
        {"type": "object", "id": "plain", **point, "text": f"free coffee round{number}"},
        {"type": "object", "id": "with data", **point, "text": "kahve", "data": 1},
        {"type": "object", "id": "of no place", "ts": ts, "text": "coffee"},
    ]
    lines += [
        {"type": "object", "id": "far", **point, "lon": 1 + i, "text": f"coffee round{number}"}
        for i in range(2)
    ]
    lines += [{"type": "query", "id": "q", "ts": ts, "last": "PT1H", **one} for one in asked]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def run_rounds(state: StateDir, settings: Settings, log: Path, plan: str, rows: int) -> None:
    """Run the rest of the log, `rows` lines a batch, and write results with and without data."""
    coordinator = Coordinator(state, settings, identify_log(log), plan)
    try:
        while True:
            latest = coordinator.latest
            assert latest is not None
            batch = latest.batch + 1
            # Rows of one block are views of its file, rows of several blocks are copied.
            refs = plan_batch(str(log), latest.offset, rows, 1 << 20, 1 + batch % 2)
            if not refs:
                return
            manifest = coordinator.step(
                batch,
                batch_end(refs),
                lambda context, refs=refs: run_like_spark(context, refs),  # type: ignore[misc]
            )
            for with_data in (False, True):
                for _ in result_lines(state, manifest, with_data):
                    pass
            dead_letter_lines(state, manifest)
    finally:
        coordinator.close()


def run_like_spark(context: BatchContext, refs: list[BlockRef]) -> Ran:
    """Run in this process with routed arrays read-only, as they are after a shuffle."""
    done = [dispatch_block(context, ref) for ref in refs]
    pieces = [piece for dispatched in done for piece in dispatched.pieces]
    for part in (part for dispatched in done for part in dispatched.routed):
        for value in part:
            if not isinstance(value, int):
                value.flags.writeable = False
        pieces += match_routed(context, part.worker, [part])[0]
    return Ran([dispatched.summary for dispatched in done], pieces, [])


def compile_in_parallel() -> None:
    """Compile the kernels of each kind in a separate process, with a progress bar."""
    total = sum(not c.function.__module__.startswith("placewire.plans") for c in KernelCache.made)
    columns = TextColumn("Compiling kernels"), BarColumn(), MofNCompleteColumn()
    compiled = 0
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=total, visible=False)

        def advance(_: str | bytes) -> None:
            nonlocal compiled
            compiled += 1
            progress.update(task, advance=1, visible=True)

        reading, writing = os.pipe()
        command = [sys.executable, "-m", "placewire.warm"]
        children = [subprocess.Popen([*command, name], stdout=writing) for name in kind_names()]
        os.close(writing)
        with open(reading, "rb") as lines:
            for line in lines:
                advance(line)
        for child in children:
            child.wait()
        with watching_compiler(advance):
            warm_kernels()  # what only several kinds together need, and what a child left out
        progress.update(task, total=compiled)
    print(f"{compiled or 'All'} kernels are compiled and cached in {cache_directory()}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with watching_compiler(lambda name: print(name, flush=True)):
            warm_kernels(kinds=sys.argv[1:])
    else:
        compile_in_parallel()
