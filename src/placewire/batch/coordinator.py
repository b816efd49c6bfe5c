"""The coordinator: run batches in order and commit each with a manifest."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from placewire.batch.dispatch import dead_letter_arrays, reject_leaps
from placewire.batch.resize import Resizer, WorkerRange
from placewire.batch.settle import Settler
from placewire.ingest.clock import BlockFacts, gather_advances, run_clock
from placewire.kinds.shard import Spread
from placewire.model.errors import Unusable
from placewire.model.kinds import kind_numbered
from placewire.model.settings import Settings, complete_settings
from placewire.model.times import FAR_PAST_US
from placewire.objects.archive import claim_archive
from placewire.objects.retain import keeping_of, leave_out
from placewire.objects.store import SLICES, LiveStore
from placewire.objects.window import SlidingWindow
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.messages import BatchContext, BlockSummary, Ran
from placewire.plans.names import named_plan, parse_plans
from placewire.plans.planners import USUAL_REBALANCE, Planners
from placewire.plans.rebalance.rebalancer import RebalanceRule
from placewire.plans.sample.questions import note_queries
from placewire.plans.sample.sampler import (
    RECENT,
    SAMPLE_A_BLOCK,
    SAMPLE_EVENTS,
    take_retained,
)
from placewire.queries.answer import (
    QueryContext,
    answer_queries,
    gather_queries,
    split_queries,
    write_answers,
)
from placewire.segments.live import LiveSegments
from placewire.storage.arrays import forget_deleted, open_arrays, write_arrays
from placewire.storage.filesystem import Folder
from placewire.storage.layout import StateDir, keep_lexicon, open_lexicon
from placewire.storage.manifest import (
    BlockEntry,
    Counters,
    LinesEntry,
    Manifest,
    Offset,
    collect_garbage,
    read_latest,
    read_manifest,
    write_manifest,
)
from placewire.text.analyzer import open_analyzer

Run = Callable[[BatchContext], Ran]
KEEP_ROWS = 50_000  # objects of smaller batches are always kept: a second pass costs more
COLLECT_EVERY = 8


class Coordinator:
    """The only writer of a state directory.

    `source` returns a fingerprint of the log up to an offset: a state resumes only with its own
    log. Without `workers` the number is that of a saved plan, or 1; within a range it follows the
    load.
    """

    def __init__(
        self,
        state: StateDir,
        settings: Settings,
        source: Callable[[Offset], str],
        plan: str = "shared",
        workers: int | WorkerRange | None = None,
        sample_events: int = SAMPLE_EVENTS,
        slice_us: int | None = None,
        archive: Path | str | None = None,
        buffer: str = "",
        rebalance: RebalanceRule = USUAL_REBALANCE,
    ) -> None:
        settings = complete_settings(settings)
        self.state = state
        self.settings = settings
        self.source = source
        self.delivered = -1
        self.expect_changes = True
        names = parse_plans(plan)
        state.check()
        self._lock = state.lock()
        try:
            state.make()
            self.latest = read_latest(state) or first_manifest(settings, names.leaf)
            check_same(state, self.latest, settings, source)
            keep_lexicon(state, settings)
            archive_folder = None
            if archive is not None:
                archive_folder = Folder(archive)
                claim_archive(archive_folder, self.latest.key)
            self.latest_epoch = self.latest.epoch + 1
            self.resizer = Resizer(workers, names.leaf)
            opening = self.resizer.initial_workers(self.latest.leaf_plan.workers)
            self.planners = Planners(state, names, opening, self.latest, sample_events, rebalance)
            self.window = window = SlidingWindow(settings, state)
            horizon = FAR_PAST_US
            if any(kind_numbered(entry.kind).uses_window for entry in self.latest.segments):
                horizon = window.horizon(
                    self.latest.store, self.latest.next_seq, self.latest.now_us
                )
            self.live = LiveSegments(
                state, self.latest.segments, buffer, window.by_time, horizon, self.latest.rewrites
            )
            self.live.partition = self.planners.partition
            self.store = LiveStore(
                state,
                self.latest.store,
                slice_us or -(-settings.retention_us // SLICES),
                open_lexicon(state, settings),
                archive_folder,
                self.latest.leaving,
            )
            self.planners.leaf.changer.retained = self._retained
            self.planners.refill(self.latest, self._retained)
            self.settler = Settler(
                state,
                self.live,
                self.latest.result_objects,
                window,
                self.store,
                self.planners.release,
                self.planners.scans,
            )
        except BaseException:
            os.close(self._lock)
            raise

    def committed(self, batch: int, end: Offset) -> bool:
        """Return whether a batch is committed; raises Unusable if it was with another end."""
        if batch > self.latest.batch:
            return False
        known = read_manifest(self.state, batch) if batch < self.latest.batch else self.latest
        if known.offset != end:
            raise Unusable(
                f"state {self.state}: batch {batch} was committed up to {known.offset._asdict()},"
                f" and is now planned up to {end._asdict()}"
            )
        return True

    def cap_rows(self, rows: int) -> int:
        """Return how many of at most `rows` events the next batch should take."""
        return self.settler.cap_batch(rows, self.latest.now_us, self.latest.batch < 0)

    def spread_by(self, spread: Spread) -> None:
        """Set how work is spread, for example over Spark tasks."""
        self.settler.spread = spread

    def step(self, batch: int, end: Offset, run: Run) -> Manifest:
        """Run one batch and commit it; skip a batch that is committed."""
        latest = self.latest
        if self.committed(batch, end):
            return latest
        if batch != latest.batch + 1:
            raise Unusable(f"state {self.state}: expects batch {latest.batch + 1}, got {batch}")
        few = end.seq - latest.next_seq <= KEEP_ROWS
        keep = self.expect_changes or self.planners.sampling or few
        ran = run(self._context(batch, latest.now_us, keep))
        now_us = self._initial_clock(ran.blocks)
        changed = any(b.subscribes or b.unsubscribes for b in ran.blocks)
        if now_us != latest.now_us or (changed and not keep):
            # The log's first times leap, or unexpected changes came: run again with that known.
            ran = run(self._context(batch, now_us, True))
        self.expect_changes = changed
        self.settler.note_matched(sum(block.objects for block in ran.blocks), ran.pieces)
        ran.blocks.sort(key=lambda block: block.index)
        manifest = self._commit(batch, end, ran)
        self.latest = manifest
        if batch % COLLECT_EVERY == 0:
            self.collect_garbage()
        return manifest

    def _retained(self, most: int = RECENT) -> Objects:
        """Return a sample of the retained objects."""
        return take_retained(self.state, self.store.entries, most)

    def _context(self, batch: int, now_us: int | None, keep: bool) -> BatchContext:
        planners = self.planners
        sampled = planners.sampling or not planners.planned
        return BatchContext(
            root=self.state.name,
            batch=batch,
            key=self.latest.key,
            now_us=now_us,
            ahead_us=self.settings.max_ahead_us,
            segments=tuple(self.latest.segments),
            keep_objects=keep,
            **planners.routes(batch, self.live)._asdict(),
            scans=planners.scans,
            sample_objects=0 if sampled else SAMPLE_A_BLOCK,
            settings=self.settings,
            with_text=self.store.archive is not None,
            tally=planners.counts_leaves,
            lines=planners.counts_lines,
            next_plan=planners.next_file,
            rewrites=tuple(self.live.rewrites.named.values()),
        )

    def _initial_clock(self, blocks: list[BlockSummary]) -> int | None:
        """Return the clock before the batch; for a log's first events, their first time.

        That time matters only if an event leaps past it; otherwise None is returned.
        """
        if self.latest.now_us is not None:
            return self.latest.now_us
        ordered = sorted(blocks, key=lambda b: b.index)
        first = next((b.first_ts_us for b in ordered if b.first_ts_us is not None), None)
        if first is None or all(
            b.last_now_us - first <= self.settings.max_ahead_us for b in ordered
        ):
            return None
        return first

    def _commit(self, batch: int, end: Offset, ran: Ran) -> Manifest:
        latest, blocks = self.latest, ran.blocks
        opening = self._initial_clock(blocks)
        clocks = run_clock(
            [(b.last_now_us, b.leaps) for b in blocks], opening, self.settings.max_ahead_us
        )
        valid = any(b.first_ts_us is not None for b in blocks)
        now_us = clocks[-1].end_us if valid or latest.now_us is not None else None
        facts = [
            BlockFacts(b.first_seq, open_arrays(self.state.file(b.file)).arrays, clock)
            for b, clock in zip(blocks, clocks, strict=True)
        ]
        if self.planners.planned:
            self.planners.observe(blocks, facts, now_us)
        for block, fact in zip(blocks, facts, strict=True):
            if block.stored is not None:
                self.store.entries += leave_out(
                    self.state, batch, block.stored, fact, self.store.lexicon
                )
        advances = gather_advances(facts, latest.now_us)
        settled = self.settler.settle(batch, blocks, facts, ran.pieces, now_us, advances)
        answers = self._answer(batch, facts)
        rejected = reject_leaps(
            [(b.first_seq, b.leaps) for b in blocks], clocks, self.settings.max_ahead_us
        )
        late_dead = self.state.new_name(batch, "rejected") if rejected else None
        if late_dead is not None:
            write_arrays(self.state.file(late_dead), dead_letter_arrays(rejected))
        self.live.compact(batch, now_us if now_us is not None else FAR_PAST_US)
        if now_us is not None:
            windows = self.settler.retention_us()
            self.store.tidy(batch, now_us, keeping_of(self.settings, windows))
        rejected_objects = sum(
            int(np.isin(f.arrays["object.event"], f.clock.rejected_event).sum()) for f in facts
        )
        counters = Counters(
            events=latest.counters.events + sum(b.events for b in blocks),
            objects=latest.counters.objects + sum(b.objects for b in blocks) - rejected_objects,
            results=latest.counters.results
            + settled.results
            + (answers.lines if answers is not None else 0),
            dead_letters=latest.counters.dead_letters + sum(b.dead for b in blocks) + len(rejected),
            idle_unsubscribes=latest.counters.idle_unsubscribes + settled.idle_unsubscribes,
        )
        self.planners.count_sent(blocks)
        self.planners.record_work(batch, ran.workers, self.live)
        self.planners = self.resizer.switch(batch, self.planners, self.live, self.settler)
        clock_us = now_us if now_us is not None else FAR_PAST_US
        plans, signals = self.planners.next_versions(batch, self.live, clock_us)
        next_plan = self.resizer.prepare(
            batch, clock_us, self.planners, self.live, latest, self._retained
        )
        manifest = Manifest(
            batch=batch,
            epoch=self.latest_epoch,
            key=latest.key,
            settings=latest.settings,
            source=self.source(end),
            offset=end,
            next_seq=end.seq,
            now_us=now_us,
            segments=self.live.save(batch, latest.next_seq),
            rewrites=dict(self.live.rewrites.named),
            plans=plans,
            blocks=[BlockEntry(b.file, b.first_seq, b.dead) for b in blocks],
            pieces=settled.pieces,
            updates=settled.updates,
            answers=answers,
            reports=settled.reports,
            result_objects=list(self.settler.result_objects.entries),
            store=list(self.store.entries),
            leaving=list(self.store.leaving),
            late_dead=late_dead,
            changes=settled.changes,
            counters=counters,
            signals=signals,
        ).with_next_plan(next_plan)
        write_manifest(self.state, manifest)
        self.store.archive_left()
        return manifest

    def _answer(self, batch: int, facts: list[BlockFacts]) -> LinesEntry | None:
        """Answer the batch's queries from the store, which includes the batch's objects."""
        asked = gather_queries(facts)
        if not asked:
            return None
        context = QueryContext(
            self.state.name, self.latest.key, self.settings, tuple(self.store.entries)
        )
        answered = self.settler.spread(partial(answer_queries, context), split_queries(asked))
        if self.planners.planned:
            analyzer = open_analyzer(self.settings, self.latest.key)
            sampler = self.planners.sampler
            sampler.queries = note_queries(
                sampler.queries, asked, answered, analyzer, self.settings
            )
        return write_answers(self.state, batch, asked, answered)

    def collect_garbage(self) -> None:
        """Delete unneeded files; `delivered` is the last batch that all sinks have."""

        def spared() -> set[str]:
            pending = {self.live.pending.name} if self.live.pending else set()
            return pending | self.store.spared

        collect_garbage(self.state, self.delivered, spared)
        forget_deleted()

    def close(self) -> None:
        """Stop compaction and release the lock."""
        self.live.close()
        self.store.close()
        os.close(self._lock)


def first_manifest(settings: Settings, plan: str) -> Manifest:
    """Return the manifest before the first batch, with a new hash key or a saved plan's."""
    saved = named_plan(plan)
    return Manifest(
        batch=-1,
        epoch=0,
        key=saved.key if saved else (secrets.randbits(64), secrets.randbits(64)),
        settings=settings,
        source="",
        offset=Offset(),
        next_seq=0,
        now_us=None,
    )


def check_same(
    state: StateDir, latest: Manifest, settings: Settings, source: Callable[[Offset], str]
) -> None:
    """Reject a state that was made with another log or other settings; raises Unusable."""
    changed = sorted(
        {
            re.sub("_(us|count|digest)$", "", name)
            for name, value in settings._asdict().items()
            if getattr(latest.settings, name) != value and name != "lexicon"
        }
    )
    if changed:
        raise Unusable(f"state {state}: was made with other settings: {', '.join(changed)}")
    if latest.batch >= 0 and latest.source != source(latest.offset):
        raise Unusable(f"state {state}: was made from another log")
