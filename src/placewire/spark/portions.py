"""Work of the coordinator that Spark does in portions: answers to many queries, many reports."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from placewire.engine.asking import Answered, AskContext, Asked, answer_here, answer_portion
from placewire.engine.due import Groups
from placewire.engine.reporting import (
    ReportContext,
    Reports,
    report_here,
    report_portion,
)

SCHEMA = "number int, payload binary"
P = TypeVar("P")
R = TypeVar("R")


def answer_on_spark(
    session: SparkSession, context: AskContext, portions: list[list[Asked]]
) -> list[Answered]:
    """Answer a batch's queries, portions dealt out to tasks; a single one is not worth a job."""
    if len(portions) == 1:
        return answer_here(context, portions)
    return run_portions(session, partial(answer_portion, context), portions)


def report_on_spark(
    session: SparkSession, context: ReportContext, portions: list[Groups]
) -> list[Reports]:
    """Make a batch's reports in the same way."""
    if len(portions) == 1:
        return report_here(context, portions)
    return run_portions(session, partial(report_portion, context), portions)


def run_portions(session: SparkSession, work: Callable[[P], R], portions: Sequence[P]) -> list[R]:
    """What `work` makes of each portion, in order.

    There is a task a core, which takes several portions: a task costs more than most of them.
    """
    cores = session.sparkContext.defaultParallelism
    tasks = session.range(0, len(portions), 1, min(len(portions), cores))
    packed = [pickle.dumps(portion) for portion in portions]
    table = tasks.mapInArrow(partial(work_on_numbers, work, packed), SCHEMA).toArrow()
    done = dict(zip(table["number"].to_pylist(), table["payload"].to_pylist(), strict=True))
    return [pickle.loads(done[number]) for number in range(len(portions))]


def work_on_numbers(
    work: Callable[[Any], Any], packed: list[bytes], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Work on the portions that the rows number."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            made = pickle.dumps(work(pickle.loads(packed[number])))
            yield pa.RecordBatch.from_arrays(
                [pa.array([number], pa.int32()), pa.array([made], pa.binary())],
                names=["number", "payload"],
            )
