"""Two plans side by side, as PS2Stream keeps them after a global adjustment, or one after another.

Side by side every object is routed twice, and meets old subscriptions at one worker and new ones at
another, in each batch until few old ones are left. Going over at once costs three batches more: the
one that decides, the one that fetches, and the first under the new plan. Processor time.
"""

from __future__ import annotations

import time

import numpy as np

from bench.drift import PLANS, WORKERS, Beat, play, say, suffix_of
from bench.drift_logs import LARGE, write_drift
from bench.engine import KEY, probe_of, rows_of
from bench.settings import Choice
from bench.tables import save_table
from bench.workload import Workload
from placewire.engine.rebalancing import RebalanceRule
from placewire.engine.worker import match_all
from placewire.model.subscriptions import take_rows
from placewire.state.segment import make_segment
from placewire.text.analyzer import Analyzer

DRIFT = "sstd objects"
ROUNDS = 7
NO_DEAD = np.empty(0, np.uint64)
PHASES = ("deciding", "fetching", "first after")


def run(choice: Choice) -> None:
    """What both plans cost a batch, and what one change costs."""
    size = LARGE
    log = write_drift(choice, DRIFT, choice.folder / "drift.jsonl", size)
    beats: list[Beat] = []
    more: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for name in ("sstd", "ps2-global", "auto"):
        played = play(log, choice.folder, PLANS[DRIFT], RebalanceRule(name), size)
        for why in played.whys:
            say(f"{name}: {why}")
        some = [beat for beat in played.beats if beat.objects][size.calm :]
        beats += some
        add_changes(some, more)
    route_ms = 1e3 * float(np.median([beat.route_s for beat in beats]))
    match_ms = 1e3 * float(np.median([beat.all_s for beat in beats]))
    whole_ms = 1e3 * float(np.median([beat.whole_s for beat in beats if not beat.changed]))
    once, halves = match_halves(choice.workload(size.batch, size.subscriptions))
    both_ms = route_ms + match_ms * (halves / once - 1.0)
    change_ms = {phase: 1e3 * float(np.median(seconds)) for phase, seconds in more.items()}
    at_once = change_ms["fetching"] + change_ms["first after"]  # both have to decide
    save_table(
        f"drift-both{suffix_of(choice)}",
        ("processor time", "ms"),
        [
            (f"a batch of {size.batch:,} objects", whole_ms),
            ("routing in it", route_ms),
            (f"matching in it, {WORKERS} workers", match_ms),
            ("both plans: routed twice, more", route_ms),
            ("both plans: matched in two halves, more", both_ms - route_ms),
            ("both plans: more a batch", both_ms),
            *(
                (f"{'both ways' if phase == 'deciding' else 'at once'}: {phase}, more", ms)
                for phase, ms in change_ms.items()
            ),
            (f"at once: a change without deciding, {len(more['deciding'])} seen", at_once),
            ("batches after which both plans cost more", at_once / both_ms),
        ],
    )


def add_changes(beats: list[Beat], more: dict[str, list[float]]) -> None:
    """What the three batches of each change took more than those around them."""
    for at, beat in enumerate(beats):
        around = [*beats[max(at - 4, 0) : at - 1], *beats[at + 2 : at + 5]]
        if not beat.changed or at < 4 or at + 3 > len(beats):
            continue
        usual = float(np.median([b.whole_s for b in around if not b.changed]))
        for phase, one in zip(PHASES, beats[at - 1 : at + 2], strict=True):
            more[phase].append(one.whole_s - usual)


def match_halves(workload: Workload) -> tuple[float, float]:
    """Seconds to match workers' shares with one segment, and with its halves one by one."""
    analyzer = Analyzer(*KEY)
    rows = rows_of(workload, analyzer)
    whole = make_segment(rows)
    halves = [make_segment(take_rows(rows, np.arange(k, rows.total, 2))) for k in (0, 1)]
    shares = [
        workload.objects.slice(at, -(-workload.objects.num_rows // WORKERS)).combine_chunks()
        for at in range(0, workload.objects.num_rows, -(-workload.objects.num_rows // WORKERS))
    ]
    probes = [probe_of(share, analyzer) for share in shares]
    once, twice = [], []
    for _ in range(ROUNDS):
        started = time.thread_time()
        for probe in probes:
            match_all(probe, [(whole, NO_DEAD)])
        once.append(time.thread_time() - started)
        started = time.thread_time()
        for half in halves:
            for probe in probes:
                match_all(probe, [(half, NO_DEAD)])
        twice.append(time.thread_time() - started)
    return min(once), min(twice)
