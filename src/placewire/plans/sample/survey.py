"""Survey files: sample their objects and live subscriptions for planning."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from placewire.ingest.decode import Changes, DecodedBlock
from placewire.ingest.log import batch_end, detect_format
from placewire.ingest.sources import LogSource, decode_block
from placewire.kernels.ids import changes_to_chains
from placewire.kernels.jit import read_only
from placewire.model.errors import Unusable
from placewire.model.kinds import BOOLEAN
from placewire.model.subscriptions import (
    SubscriptionRows,
    concat_offsets,
    concat_rows,
    map_columns,
    no_rows,
    take_rows,
)
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.messages import BatchContext
from placewire.plans.sample.sample import choose_evenly
from placewire.plans.sample.sampler import Reservoir
from placewire.storage.manifest import Offset

BATCH_ROWS = 200_000

Show = Callable[[int, int], None]  # bytes read so far, and events found in them


class SurveyedFile(NamedTuple):
    """What was read of one file; `first_error` is empty when no event is invalid."""

    path: Path
    events: int
    invalid: int
    first_error: str


class Survey(NamedTuple):
    """A sample of a log's objects and live subscriptions, and how many there are of each."""

    objects: Objects
    rows: SubscriptionRows
    objects_seen: int
    subscriptions_seen: int
    others_seen: int  # subscriptions that are not boolean
    files: tuple[SurveyedFile, ...]


class Surveyor:
    """Collects blocks: objects in a reservoir, changes in a list that is settled at the end."""

    def __init__(self, sample: int) -> None:
        self.objects = Reservoir(sample)
        self.changes: list[Changes] = []
        self.rows: list[SubscriptionRows] = []

    def add_objects(self, block: DecodedBlock) -> None:
        """Add a block's objects."""
        self.objects.add(block.codes, block.objects.term_offsets, block.objects.terms)

    def add_changes(self, block: DecodedBlock) -> None:
        """Add a block's subscribes and unsubscribes."""
        if block.changes.event.size:
            self.changes.append(block.changes)
            self.rows.append(block.rows)

    def live_rows(self, most: int) -> tuple[SubscriptionRows, int, int]:
        """Those that stand at the end, or an even choice of `most` of them, and their number.

        Only boolean ones: plans cut their world, and no other's. Last comes how many others stand.
        """
        if not self.changes:
            return no_rows(), 0, 0
        previous = changes_to_chains(
            read_only(np.concatenate([c.id_hash for c in self.changes])),
            read_only(concat_offsets([c.id_offsets for c in self.changes])),
            read_only(np.concatenate([c.id_bytes for c in self.changes])),
        )
        last = np.ones(previous.size, np.bool_)
        last[previous[previous >= 0]] = False
        # Rows lie in the order of the subscribes that made them.
        subscribes = np.concatenate([c.row for c in self.changes]) >= 0
        rows = concat_rows(self.rows)
        standing = last[subscribes]
        live = np.flatnonzero(standing & (rows.kind == BOOLEAN))
        chosen = choose_evenly(live, most)
        rows = rows if chosen.size == rows.total else take_rows(rows, chosen)
        return rows, int(live.size), int(np.count_nonzero(standing)) - int(live.size)


def survey_files(
    objects: Path,
    subscriptions: Path,
    key: tuple[int, int],
    *,
    sample: int,
    sample_subscriptions: int,
    show: Show,
) -> Survey:
    """The objects of one file and the subscriptions of another, or of the same; raises Unusable.

    Terms are hashed under `key`. No event is too far ahead in time here, and none expires: a plan
    is for what is asked, not for when.
    """
    surveyor = Surveyor(sample)
    form = detect_format(objects)
    if detect_format(subscriptions) == "parquet":
        raise Unusable(f"subscriptions {subscriptions}: must be an event log, got a Parquet file")
    if objects.samefile(subscriptions):
        takers = [surveyor.add_objects, surveyor.add_changes]
        files = [survey_file(objects, form, key, takers, show)]
    else:
        before = objects.stat().st_size
        files = [
            survey_file(objects, form, key, [surveyor.add_objects], show),
            survey_file(
                subscriptions,
                "jsonl",
                key,
                [surveyor.add_changes],
                lambda read, events: show(before + read, events),
            ),
        ]
    rows, live, others = surveyor.live_rows(sample_subscriptions)
    return Survey(
        Objects(*surveyor.objects.in_order()),
        map_columns(rows, read_only),
        surveyor.objects.seen,
        live,
        others,
        tuple(files),
    )


def survey_file(
    path: Path,
    form: str,
    key: tuple[int, int],
    takers: Sequence[Callable[[DecodedBlock], None]],
    show: Show,
) -> SurveyedFile:
    """Read a whole file and hand its blocks to `takers`."""
    events = invalid = 0
    first_error = ""
    for read, first_seq, block in read_blocks(path, form, key):
        if block.dead and not first_error:
            letter = block.dead[0]
            first_error = f"event {first_seq + letter.event}: {letter.error}"
        events += block.events
        invalid += len(block.dead)
        for take in takers:
            take(block)
        show(read, events)
    return SurveyedFile(path, events, invalid, first_error)


def read_blocks(
    path: Path, form: str, key: tuple[int, int]
) -> Iterator[tuple[int, int, DecodedBlock]]:
    """The blocks of a file, each with the bytes read up to its end and its first seq."""
    context = BatchContext(
        root="",
        batch=0,
        key=key,
        now_us=None,
        ahead_us=0,
        segments=(),
        keep_objects=False,
    )
    source = LogSource(str(path), form)
    rows = BATCH_ROWS if form == "jsonl" else sys.maxsize
    start = Offset()
    size = path.stat().st_size
    try:
        while refs := source.plan(start, rows, 1):
            for ref in refs:
                read = ref.end if form == "jsonl" else size * (ref.number + 1) // len(refs)
                yield read, ref.first_seq, decode_block(context, ref)
            start = batch_end(refs)
    except pa.ArrowException as error:
        raise Unusable(f"{path}: cannot be read as Parquet: {error}") from None
