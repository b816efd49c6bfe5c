"""From measured costs to clusters that nobody has here: a model of one batch's critical path.

A batch is one job: the driver plans it and hands out its tasks, workers decode, retain and match
their share of the objects and write their files, the driver settles and commits, a sink on the
driver puts the matches into lines. Workers work side by side, everything of the driver's is one
after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.costs import Batch, Jobs

TASKS_A_WORKER = 2  # as the pipeline has it
OBJECTS_A_TASK = 25_000  # of a batch that is as large as it should be


class Line(NamedTuple):
    """A cost that is a sum of so much of each thing."""

    each: tuple[float, ...]

    def __call__(self, *amounts: float) -> float:
        return sum(cost * amount for cost, amount in zip(self.each, amounts, strict=True))


class Costs(NamedTuple):
    """Seconds of processors: decode by (objects, blocks), match by (objects, candidates), ..

    `candidates` and `matches` are counts: of an object, by (1, subscriptions).
    """

    decode: Line
    retain: Line
    match: Line  # objects, candidates
    write: Line  # blocks, matches
    commit: Line  # 1, blocks, matches
    sink: Line  # blocks, matches
    job: Line  # 1, tasks: of the driver
    task: Line  # tasks: of the workers
    candidates: Line
    matches: Line
    result_bytes: float  # of a match, as a line
    segment_bytes: float  # of a subscription


class Cluster(NamedTuple):
    """So many workers, a core each, and so many subscriptions."""

    workers: int
    subscriptions: float
    matches_an_object: float | None = None  # as the workload has them, unless given
    objects: int | None = None  # of a batch


class Path(NamedTuple):
    """Seconds of one batch, part after part, and what it had."""

    objects: int
    matches: float
    job_s: float
    decode_s: float
    match_s: float
    write_s: float
    commit_s: float
    sink_s: float

    @property
    def seconds(self) -> float:
        """From the plan to the commit; the sink works beside the next batch."""
        return sum(self[2:7])

    @property
    def objects_per_s(self) -> float:
        """What can go on for ever: the sink has to keep up."""
        return self.objects / max(self.seconds, self.sink_s)

    @property
    def slowest(self) -> str:
        """The part that it waits for most."""
        parts = dict(zip(("job", "decode", "match", "write", "commit"), self[2:7], strict=True))
        return "sink" if self.sink_s > self.seconds else max(parts, key=lambda name: parts[name])


def fit(amounts: Sequence[Sequence[float]], seconds: Sequence[float]) -> Line:
    """Costs of each thing, none below zero, that explain the seconds best, in proportion."""
    rows, target = np.array(amounts, float), np.array(seconds, float)
    weight = 1 / np.maximum(target, 1e-12)
    left = list(range(rows.shape[1]))
    each = np.zeros(rows.shape[1])
    while left:
        found = np.linalg.lstsq(rows[:, left] * weight[:, None], target * weight, rcond=None)[0]
        if (found >= 0).all():
            each[left] = found
            break
        left.pop(int(np.argmin(found)))
    return Line(tuple(each.tolist()))


def fit_costs(batches: Sequence[Batch], jobs: Sequence[Jobs]) -> Costs:
    """The costs of what was measured."""

    def line(name: str, *things: str) -> Line:
        amounts = [[1.0 if t == "1" else getattr(b, t) for t in things] for b in batches]
        return fit(amounts, [getattr(b, name) for b in batches])

    sizes = [(1.0, b.subscriptions) for b in batches]
    return Costs(
        decode=line("decode_s", "objects", "blocks"),
        retain=line("retain_s", "objects", "blocks"),
        match=line("match_s", "objects", "candidates"),
        write=line("write_s", "blocks", "matches"),
        commit=line("commit_s", "1", "blocks", "matches"),
        sink=line("sink_s", "blocks", "matches"),
        job=fit([(1.0, job.tasks) for job in jobs], [job.driver_s for job in jobs]),
        task=fit([(job.tasks,) for job in jobs], [job.all_s - job.driver_s for job in jobs]),
        candidates=fit(sizes, [b.candidates / b.objects for b in batches]),
        matches=fit(sizes, [b.matches / b.objects for b in batches]),
        result_bytes=sum(b.result_bytes for b in batches) / sum(b.matches for b in batches),
        segment_bytes=max(b.bytes_a_subscription for b in batches),
    )


def project(costs: Costs, cluster: Cluster) -> Path:
    """The critical path of a batch on a cluster, under plan `shared`."""
    tasks = TASKS_A_WORKER * cluster.workers
    objects = cluster.objects or OBJECTS_A_TASK * tasks
    matches = costs.matches(1.0, cluster.subscriptions)
    candidates = costs.candidates(1.0, cluster.subscriptions)
    if cluster.matches_an_object is not None:
        # Fewer subscriptions in every place: candidates that are no matches stay.
        candidates += min(0.0, cluster.matches_an_object - matches)
        matches = cluster.matches_an_object
    share, blocks = objects / cluster.workers, float(TASKS_A_WORKER)
    return Path(
        objects,
        objects * matches,
        costs.job(1.0, tasks) + costs.task(blocks),
        costs.decode(share, blocks) + costs.retain(share, blocks),
        costs.match(share, share * candidates),
        costs.write(blocks, share * matches),
        costs.commit(1.0, tasks, objects * matches),
        costs.sink(tasks, objects * matches),
    )
