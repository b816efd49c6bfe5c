"""Taking batches of the sources: each is recorded, run, committed and delivered."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from placewire.engine.coordinator import Coordinator
from placewire.engine.delivery import Delivery
from placewire.engine.intake import block_rows, next_blocks
from placewire.engine.log import Offset
from placewire.model.errors import Unusable
from placewire.spark.intake import write_blocks
from placewire.spark.pipeline import run_on_spark
from placewire.spark.portions import answer_on_spark, report_on_spark
from placewire.spark.session import count_machines
from placewire.state.checkpoint import Checkpoint
from placewire.state.intake import Intake, IntakeBatch
from placewire.state.manifest import Manifest


class Stopped(Exception):
    """The query ends as it was asked to; what it had not committed comes again."""


class BatchTaker:
    """Takes what Spark gives, batch by batch, until `stopping` is set between two of its own.

    What goes wrong is kept as `problem`, since Spark tells only that something did.
    """

    def __init__(
        self,
        spark: SparkSession,
        coordinator: Coordinator,
        batch_rows: int,
        stopping: threading.Event,
    ) -> None:
        self.spark = spark
        self.coordinator = coordinator
        self.batch_rows = batch_rows
        self.stopping = stopping
        self.intake = Intake(coordinator.state)
        self.checkpoint = Checkpoint(coordinator.state)
        self.delivery: Delivery | None = None
        self.after: Callable[[Manifest], None] | None = None
        self.problem: Exception | None = None

    def begin(self, delivery: Delivery, after: Callable[[Manifest], None] | None) -> None:
        """Bring sinks up to the last commit, and be ready for the next batch."""
        self._check_checkpoint()
        self.delivery, self.after = delivery, after
        delivery.deliver(self.coordinator.latest)
        self.coordinator.planners.know_machines(partial(count_machines, self.spark))
        self.coordinator.ask = partial(answer_on_spark, self.spark)
        self.coordinator.report = partial(report_on_spark, self.spark)

    def _check_checkpoint(self) -> None:
        """A checkpoint and its intake belong together: one without the other would skip data."""
        self.intake.make()
        self.checkpoint.pull()
        last = self.intake.last()
        if last is not None and last >= 0 and not self.checkpoint.exists:
            raise Unusable(
                f"state {self.coordinator.state}: its checkpoint is gone; begin a new state"
            )

    def take(self, frame: DataFrame, number: int) -> None:
        """Take a batch of the sources."""
        try:
            recorded = self._record(frame, number)
            if recorded is not None:
                self._run(recorded)
                self.intake.tidy()
        except Exception as error:
            self.problem = error
            raise

    def _record(self, frame: DataFrame, number: int) -> IntakeBatch | None:
        """Fix the order of a batch, if that was not done before; None if all of it has run."""
        self._heed_stop()
        recorded = self.intake.read(number)
        if recorded is not None:
            return recorded
        last = self.intake.last()
        if last is not None and number <= last:
            return None  # committed long ago
        rows = block_rows(self.coordinator.cap_rows(self.batch_rows))
        blocks = write_blocks(frame, self.coordinator.state.name, rows)
        recorded = IntakeBatch(self.coordinator.latest.offset["byte"], blocks)
        self.checkpoint.push()
        self.intake.record(number, recorded)
        return recorded

    def _run(self, recorded: IntakeBatch) -> None:
        """Run what is left of a recorded batch, in batches of the coordinator's."""
        coordinator = self.coordinator
        assert self.delivery is not None
        while True:
            start = Offset(**coordinator.latest.offset)
            refs, end = next_blocks(recorded, start, coordinator.cap_rows(self.batch_rows))
            if not refs:
                return
            self._heed_stop()
            run = partial(run_on_spark, self.spark, refs, coordinator.planners.workers)
            manifest = coordinator.step(coordinator.latest.batch + 1, end, run)
            self.delivery.deliver(manifest)
            coordinator.delivered = min(self.delivery.delivered, manifest.batch)
            if self.after is not None:
                self.after(manifest)

    def _heed_stop(self) -> None:
        if self.stopping.is_set():
            raise Stopped("asked to stop between two batches")

    def undelivered(self) -> dict[str, int]:
        """How many committed batches each sink lacks."""
        if self.delivery is None:
            return {}
        return self.delivery.lacking(self.coordinator.latest.batch)

    def close(self) -> None:
        """Let go of the state."""
        with contextlib.suppress(Unusable):  # it comes again with the next batch
            self.checkpoint.push()
        self.coordinator.close()
