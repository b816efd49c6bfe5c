"""Run batches in this process, with the same steps as on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from placewire.batch.coordinator import Coordinator
from placewire.batch.dispatch import dispatch_block
from placewire.batch.match import match_routed
from placewire.ingest.log import BlockRef
from placewire.ingest.sources import Source
from placewire.plans.messages import BatchContext, Ran, Routed, WorkerSummary
from placewire.storage.manifest import Manifest


def run_blocks(context: BatchContext, refs: list[BlockRef]) -> Ran:
    """Dispatch blocks, then match each worker's routed objects."""
    summaries, pieces = [], []
    workers: list[WorkerSummary] = []
    inboxes: dict[int, list[Routed]] = {}
    for ref in refs:
        dispatched = dispatch_block(context, ref)
        summaries.append(dispatched.summary)
        pieces += dispatched.pieces
        for part in dispatched.routed:
            inboxes.setdefault(part.worker, []).append(part)
    for worker, parts in inboxes.items():
        found, did = match_routed(context, worker, parts)
        pieces += found
        workers += did
    return Ran(summaries, pieces, workers)


def replay_log(
    coordinator: Coordinator,
    log: Source,
    batch_rows: int,
    workers: int = 1,
    after: Callable[[Manifest], None] | None = None,
) -> Iterator[Manifest]:
    """Run the rest of a log, batch by batch."""
    while True:
        start = coordinator.latest.offset
        blocks = max(workers, coordinator.planners.workers)
        refs = log.plan_capped(start, batch_rows, coordinator.cap_rows(batch_rows), blocks)
        if not refs:
            return
        manifest = coordinator.step(
            coordinator.latest.batch + 1,
            log.end(refs),
            lambda context, refs=refs: run_blocks(context, refs),  # type: ignore[misc]
        )
        if after is not None:
            after(manifest)
        yield manifest
