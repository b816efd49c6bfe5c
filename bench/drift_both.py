"""A plan made anew: for all subscriptions at once, or the older plan beside it as PS2Stream does.

Side by side every object is routed twice, and meets old subscriptions at one worker and new ones at
another, in each batch until few old ones are left. So that they become few, subscriptions are
replaced by ones like them while the log drifts, one for ten objects. Times are of the processor.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.drift import PLANS, WORKERS, Played, draw_over_time, play, say, suffix_of
from bench.drift_logs import LARGE, Size, write_drift
from bench.settings import Choice
from bench.tables import save_table
from placewire.plans.rebalance.rebalancer import RebalanceRule

DRIFTS = ("sstd objects", "tornado")
RULES = {
    "off": RebalanceRule("off"),
    "ps2-global, at once": RebalanceRule("ps2-global"),
    "ps2-global, side by side": RebalanceRule("ps2-global", beside=True),
    "auto": RebalanceRule("auto"),
}
HEADER = (
    "drift", "way", "changes", "batches with two plans", "objects/s in drift, counted",
    "of off, counted", "busiest / mean, counted", "all workers, ms a batch", "routing, ms a batch",
    "batch, ms", "with two plans, ms", "longest, ms",
)  # fmt: skip


def run(choice: Choice) -> None:
    """Both ways over the same logs."""
    size = LARGE._replace(renewed=LARGE.batch // 10)
    rows: list[tuple[str | float, ...]] = []
    for drift in DRIFTS:
        log = write_drift(choice, drift, choice.folder / "drift.jsonl", size)
        played: dict[str, Played] = {}
        for name, rule in RULES.items():
            played[name] = play(log, choice.folder, PLANS[drift], rule, size)
            for why in played[name].whys:
                say(f"{drift}, {name}: {why}")
        first = next(at for at, beat in enumerate(played["off"].beats) if beat.objects)
        rows += tell(drift, played, first, size)
        label = f"drift-both-{drift.replace(' ', '-')}{suffix_of(choice)}"
        draw_over_time(label, played, first, size)
    save_table(f"drift-both{suffix_of(choice)}", HEADER, rows)


def tell(
    drift: str, played: dict[str, Played], first: int, size: Size
) -> Iterator[tuple[str | float, ...]]:
    """A row for each way; `first` is the first batch with objects."""
    calm, off = first + size.calm, played["off"]
    for name, run_ in played.items():
        beats = run_.beats[calm:]
        two = [beat for beat in beats if beat.beside]
        yield (
            drift,
            name,
            len(run_.whys),
            len(two),
            run_.counted_per_s(calm),
            run_.counted_per_s(calm) / off.counted_per_s(calm),
            WORKERS * sum(b.counted_s for b in beats) / sum(b.counted_all_s for b in beats),
            1e3 * float(np.mean([b.all_s for b in beats])),
            1e3 * float(np.mean([b.route_s for b in beats])),
            1e3 * float(np.median([b.whole_s for b in beats])),
            1e3 * float(np.median([b.whole_s for b in two])) if two else 0.0,
            1e3 * max(b.whole_s for b in beats),
        )
