"""Update time at 0.1 to 10 M subscriptions, simulated by worker and measured on two cores.

The plans are those of the paper, `dkm` and `shared` as Placewire has them. `two cores` is no
estimate: two threads share the objects of a time-stamp out between them and one then enters what
they found, timed by the clock on the wall.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bench.clock import free_bytes, say
from bench.figures import Figures, FiguresAnd, Table
from bench.harness import Setup
from bench.papers.dkm_sks.cluster import (
    TickBlock,
    TickChanges,
    Undealt,
    clock,
    enter_together,
    probe_share,
)
from bench.papers.dkm_sks.data import (
    INITIAL,
    MADE_UP,
    TICK_OBJECTS,
    VENUES,
    NearestSource,
    StandingResults,
    read_source,
    stand,
)
from bench.papers.dkm_sks.parameters import save_by
from bench.papers.dkm_sks.plans import HEADER, PlanOutcome, compare, describe, warm_up
from placewire.kinds.candidates import Matches, Target
from placewire.kinds.nearest.match import find_near, sift_near
from placewire.model.subscriptions import take_rows
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.route.leaf_route import RoutedShare, SpreadRoute

MANY = 1_000_000
NAMES = ("dkm broadcast", "dkm balls", "shared", "sop subsets", "kop words")  # the slowest last
FEW_TICKS = 5  # from a million on
CORES = 2
BYTES_EACH = 1_500  # about what a subscription takes while plans and indexes are made
PARTS = ("probe", "find", "sift", "enter", "changes")


def measure_growth(
    setup: Setup,
    sizes: tuple[int, ...] = (100_000, 500_000, 1_000_000),
    initial: int = INITIAL,
    ticks: int = 10,
) -> Figures:
    """All sizes in turn; one that does not fit the memory is left out."""
    source = read_source(setup, VENUES if setup.data else MADE_UP, ticks, initial)
    say(f"{source.name}: {source.initial.lon.size:,} initial objects")
    warm_up(source)
    outcomes: dict[int, dict[str, PlanOutcome]] = {}
    parts = []
    for size in sizes:
        if size * BYTES_EACH > free_bytes():
            say(f"{size:,} subscriptions: left out, {free_bytes() / 1e9:.1f} GB are free")
            continue
        outcomes[size], row = yield from run_size(source, size, ticks)
        parts.append(row)
        yield Table(
            "nearest-two-cores",
            ("subscriptions", "median, ms", "longest, ms", *(f"{p}, ms" for p in PARTS),
             "postings an object", "entrants a time-stamp"),
            parts,
        )  # fmt: skip
    if len(outcomes) > 1:
        yield from save_by("subscriptions", outcomes)


def run_size(
    source: NearestSource, size: int, most_ticks: int
) -> FiguresAnd[tuple[dict[str, PlanOutcome], tuple[object, ...]]]:
    """One size: every plan, then two cores."""
    say(f"{size:,} subscriptions")
    standing = stand(source, size, told=size >= MANY)
    say("first results are there; radii: " + ", ".join(f"{x:.3g}" for x in describe(standing)))
    ticks = min(FEW_TICKS, most_ticks) if size >= MANY else most_ticks
    row = run_two_cores(standing, TickChanges(standing, most_ticks))
    say("two cores: " + ", ".join(f"{x:.4g}" for x in row))
    outcomes = compare(standing, NAMES, ticks)
    yield Table(f"nearest-{size}", HEADER, [o.row() for o in outcomes.values()])
    return outcomes, (f"{size:,}", *row)


def run_two_cores(standing: StandingResults, changes: TickChanges) -> tuple[object, ...]:
    """Half of the time-stamps on two threads by the wall, half on one, each step by processor."""
    cluster = Undealt(standing, SpreadRoute(CORES), CORES)
    walls, steps, looked, entered = [], [], [], []
    with ThreadPoolExecutor(CORES) as threads:
        for tick, block in enumerate(changes.blocks()):
            if tick < changes.ticks // 2:
                started = time.perf_counter()
                step_together(cluster, threads, block)
                change(cluster, changes, tick)
                walls.append(1e3 * (time.perf_counter() - started))
                continue
            marks, met, new = step_alone(cluster, block)
            change(cluster, changes, tick)
            steps.append(1e3 * np.diff([*marks, clock()]))
            looked.append(met)
            entered.append(new)
    return (
        float(np.median(walls)),
        max(walls),
        *np.mean(steps, axis=0).tolist(),
        float(np.mean(looked)) / TICK_OBJECTS,
        float(np.mean(entered)),
    )


def step_together(cluster: Undealt, threads: ThreadPoolExecutor, block: TickBlock) -> None:
    """The objects of a time-stamp, found on all threads and entered on one."""
    o = block.objects
    stores = cluster.stores

    def find(share: RoutedShare) -> list[tuple[Matches, np.ndarray]]:
        probe, event = probe_share(block, share)
        found = [store.find(0, probe, event) for store in stores]
        return [(m, event[m.object].astype(np.int64)) for m in found]

    found = list(
        threads.map(find, cluster.route.cut(Objects(block.codes, o.term_offsets, o.terms)))
    )
    for at, store in enumerate(stores):
        enter_together(store, block, [of[at] for of in found])


def step_alone(cluster: Undealt, block: TickBlock) -> tuple[list[float], int, int]:
    """The same on one thread: when each step began, postings met, and how many entered."""
    marks = [clock()]
    (share,) = SpreadRoute(1).cut(
        Objects(block.codes, block.objects.term_offsets, block.objects.terms)
    )
    probe, event = probe_share(block, share)
    marks.append(clock())
    stores = cluster.stores
    found = [
        find_near(probe, Target(store.segment, store.dead, (0,), store.limits)) for store in stores
    ]
    marks.append(clock())
    sure = np.ones(event.size, np.bool_)
    sifted = [
        sift_near(m, event, sure, store.segment.rows.k)
        for store, m in zip(stores, found, strict=True)
    ]
    marks.append(clock())
    entered = 0
    for store, m, part in zip(stores, found, sifted, strict=True):
        entering = m._replace(object=part.object, row=part.row, measure=part.distance)
        at = event[part.object].astype(np.int64)
        entered += enter_together(store, block, [(entering, at)]).row.size
    marks.append(clock())
    return marks, sum(m.candidates for m in found), entered


def change(cluster: Undealt, changes: TickChanges, tick: int) -> None:
    """The new subscriptions and the ends of a time-stamp."""
    numbers = changes.inserts(tick)
    cluster.young.add(take_rows(changes.fresh, numbers), numbers)
    cluster.base.end(changes.deletes(tick))
