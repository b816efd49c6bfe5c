"""What a run of the benchmark measures, and on which data."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bench.workload import Workload, generated, real

SEED = 7
STOP_WORDS = 100


class Choice(NamedTuple):
    """The data and the sizes of a run."""

    data: Path | None
    full: bool
    folder: Path

    @property
    def name(self) -> str:
        return "posts_us" if self.data else "generated"

    def workload(self, objects: int, subscriptions: int, skip: int = STOP_WORDS) -> Workload:
        """Objects and subscriptions; the `skip` most frequent terms are never keywords."""
        if self.data is None:
            return generated(objects, subscriptions, SEED, skip)
        return real(self.data, "posts_us", objects, subscriptions, SEED, skip)
