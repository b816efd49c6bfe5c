"""Matching tables: which of many objects fit which of many subscriptions, as one batch job.

Time plays no part: every subscription meets every object, whatever their times. So this is also how
to see what a subscription would have matched.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from placewire.batch.coordinator import Coordinator
from placewire.ingest.columns import decode_columns
from placewire.ingest.decode import DecodedBlock
from placewire.ingest.log import Offset
from placewire.ingest.sources import MOST_ROWS, identify_stream, next_blocks
from placewire.kernels.jit import read_only
from placewire.kernels.text.hash_table import numbers_to_groups
from placewire.kinds.boolean.match import make_probe, match_all
from placewire.kinds.candidates import Matches
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.kinds import name_of_kind
from placewire.model.settings import Settings, complete_settings, parse_settings
from placewire.model.subscriptions import BOOLEAN, SubscriptionRows
from placewire.segments.segment import open_segments
from placewire.sinks.outbox import dead_letters
from placewire.spark.columns import (
    ANY_TIME,
    AXES,
    OBJECT_NAMES,
    OWN,
    check_frames,
    find_columns,
    kind_of,
    quoted,
    take_changes,
    take_objects,
)
from placewire.spark.intake import object_columns, write_blocks
from placewire.spark.parquet_files import FileTable, find_files, number_portions, read_portions
from placewire.spark.stages import run_on_spark
from placewire.storage.intake_record import Intake, IntakeBatch
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, SegmentEntry
from placewire.text.analyzer import Analyzer, open_analyzer

AT_ONCE = 1_000_000  # subscriptions in a batch
TAKEN = OWN  # before the numbers of columns that come along
IDS = ("subscription", "object")  # what every match has
# Matches that leave a task together: enough for Arrow, few enough to stay in the caches.
MATCHES_AT_ONCE = 1 << 18
MOST_BYTES = (1 << 31) - 1  # that offsets of 32 bits can tell apart


class Matched(NamedTuple):
    """What a task needs to match objects: where the subscriptions are, and the key of terms."""

    root: str
    key: tuple[int, int]
    settings: Settings
    segments: tuple[SegmentEntry, ...]
    kept: int  # columns that come along


def match(
    objects: DataFrame,
    subscriptions: DataFrame,
    *,
    keep: Sequence[str] = (),
    settings: Settings | dict[str, Any] | None = None,
    object_columns: Mapping[str, str] | None = None,
    subscription_columns: Mapping[str, str] | None = None,
    state: Path | str | None = None,
) -> DataFrame:
    """All matches of a table of objects with `boolean` subscriptions: who fits whom.

    Gives a DataFrame of `subscription` and `object`, both ids, and the columns of the objects that
    `keep` names. Subscriptions are indexed here and now, in `state` or a folder that goes away with
    the process (on a cluster it has to be one that all machines see); objects are matched when
    the result is asked for. Of subscriptions with the same id the last counts. Rows that are no
    valid object match nothing: `refused_objects` has them, and why.
    """
    check_frames(objects=objects, subscriptions=subscriptions)
    spark = objects.sparkSession
    if objects.isStreaming or subscriptions.isStreaming:
        raise Unusable("match: takes tables; for streaming DataFrames there is Stream")
    check_kept(objects, keep)
    if settings is not None and not isinstance(settings, Settings):
        try:
            settings = parse_settings(settings)
        except InvalidEvent as error:
            raise Unusable(f"settings: {error}") from None
    settings = complete_settings(settings or Settings())
    index = StateDir.given(state if state is not None else passing_folder())
    changes = take_changes(subscriptions, subscription_columns, timeless=True)
    manifest = index_subscriptions(spark, changes, index, settings)
    frame = take_timeless(objects, object_columns, keep)
    matched = Matched(index.name, manifest.key, settings, tuple(manifest.segments), len(keep))
    kept = {f"kept{number}": name for number, name in enumerate(keep)}
    schema = T.StructType(
        [
            T.StructField("subscriptions", T.ArrayType(T.StringType())),
            T.StructField("object", T.StringType()),
            *(T.StructField(to, objects.schema[name].dataType) for to, name in kept.items()),
        ]
    )
    files = find_files(frame)
    if files is None:
        found = frame.mapInArrow(partial(match_partition, matched), schema)
    else:
        found = number_portions(spark, files).mapInArrow(
            partial(match_portions, matched, files), schema
        )
    # An object leaves Python once, with all its subscriptions: the JVM makes the rows.
    return found.select(
        F.explode("subscriptions").alias("subscription"),
        "object",
        *(F.col(to).alias(name) for to, name in kept.items()),
    )


def check_kept(objects: DataFrame, keep: Sequence[str]) -> None:
    """Refuse columns to keep that are not there, or that a match has already; raises Unusable."""
    for name in keep:
        if name not in objects.columns:
            raise Unusable(f"keep: column {name!r} is not there, got {', '.join(objects.columns)}")
        if name.lower() in IDS:
            raise Unusable(f"keep: {name!r} is a column of every match; rename that of the objects")
        if list(keep).count(name) > 1:
            raise Unusable(f"keep: column {name!r} is there twice")


def refused_objects(
    objects: DataFrame, *, object_columns: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows that are no valid objects: their `id`, and the `error`."""
    frame = take_timeless(objects, object_columns, ())
    return frame.mapInArrow(refuse_partition, "id string, error string")


def take_timeless(
    objects: DataFrame, given: Mapping[str, str] | None, keep: Sequence[str]
) -> DataFrame:
    """Objects in the intake's form, with what is kept of them; their times do not matter.

    Columns that are the same for every object, or empty, do not travel.
    """
    found = {name: column for name, column in (given or {}).items() if name != "ts"}
    kept = {f"{TAKEN}{number}": objects[quoted(name)] for number, name in enumerate(keep)}
    whole = objects.withColumns(kept | {TAKEN: F.lit(ANY_TIME)})
    frame = take_objects(whole, {**found, "ts": TAKEN}, carry=list(kept))
    there = find_columns(whole, OBJECT_NAMES, found, "objects")
    place = ["wkb"] if "point" in there else ["lon", "lat"]
    for axis in () if "point" in there else AXES:
        if not isinstance(kind_of(whole, there[axis]), T.NumericType):
            place.append(f"{axis}_text")  # what stands there instead of a number
    data = ["data", "data_text"] if "data" in there else []
    return frame.select("id", *place, "text", *data, *kept)


def index_subscriptions(
    spark: SparkSession, changes: DataFrame, state: StateDir, settings: Settings
) -> Manifest:
    """Take subscriptions in as a stream would; raises Unusable if one is invalid or not boolean."""
    coordinator = Coordinator(state, settings, identify_stream, "shared")
    try:
        if coordinator.latest.batch >= 0:
            raise Unusable(f"state {state}: has something in it already, and has to be new")
        intake = Intake(state)
        intake.make()
        recorded = IntakeBatch(0, write_blocks(changes, state.name, MOST_ROWS))
        workers = spark.sparkContext.defaultParallelism
        while True:
            start = Offset(**coordinator.latest.offset)
            refs, end = next_blocks(recorded, start, AT_ONCE)
            if not refs:
                break
            run = partial(run_on_spark, spark, refs, workers)
            manifest = coordinator.step(coordinator.latest.batch + 1, end, run)
            if manifest.counters.dead_letters:
                letter = dead_letters(state, manifest)[0]
                raise Unusable(f"subscriptions: {letter['error']}, in {letter['event'][:200]}")
        for entry in coordinator.latest.segments:
            if entry.kind != BOOLEAN:
                name = name_of_kind(entry.kind)
                raise Unusable(f"match: takes boolean subscriptions, got {name}")
        return coordinator.latest
    finally:
        coordinator.close()


def match_portions(
    matched: Matched, files: FileTable, numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Match objects that are read from their files here."""
    return match_partition(matched, read_portions(files, numbers))


def match_partition(
    matched: Matched, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Match the objects of a partition, some thousand at once."""
    state = StateDir.at(matched.root)
    analyzer = open_analyzer(matched.settings, matched.key)
    live = open_segments(state, matched.segments)
    names = [id_strings(segment.rows) for segment, _ in live]
    for table in gather_rows(batches):
        block = decode_block(table, analyzer)
        o = block.objects
        probe = make_probe(block.codes, o.lon, o.lat, o.now_us, o.term_offsets, o.terms)
        carried = table.select(
            ["id", *(f"{TAKEN}{n}" for n in range(matched.kept))]
        ).combine_chunks()
        for ids, found in zip(names, match_all(probe, live), strict=True):
            yield from write_lists(found, o.event, ids, carried)


def write_lists(
    found: Matches, event: NDArray[np.uint32], ids: pa.Array, carried: pa.Table
) -> Iterator[pa.RecordBatch]:
    """Matches as rows of an object with a list of subscriptions; one object may have several."""
    offsets, order = numbers_to_groups(read_only(found.object), event.size)
    rows = found.row[order]
    matched = np.flatnonzero(np.diff(offsets))
    starts = offsets[matched]
    for first in range(0, rows.size, MATCHES_AT_ONCE):
        last = min(first + MATCHES_AT_ONCE, rows.size)
        here = slice(
            np.searchsorted(starts, first, "right") - 1, np.searchsorted(starts, last, "left")
        )
        cuts = np.append(np.maximum(starts[here], first), last) - first
        taken = ids.take(pa.array(rows[first:last])).cast(pa.string())
        lists = pa.ListArray.from_arrays(pa.array(cuts.astype(np.int32)), taken)
        columns = carried.take(pa.array(event[matched[here]])).combine_chunks().columns
        yield pa.RecordBatch.from_arrays(
            [lists, *(column.chunk(0) for column in columns)],
            names=["subscriptions", "object", *(f"kept{n}" for n in range(len(columns) - 1))],
        )


def id_strings(rows: SubscriptionRows) -> pa.Array:
    """The ids of a segment, as they lie in its file."""
    small = rows.id_bytes.size <= MOST_BYTES
    kind, offsets = (pa.StringArray, np.int32) if small else (pa.LargeStringArray, np.int64)
    places = pa.py_buffer(rows.id_offsets.astype(offsets))
    return kind.from_buffers(rows.total, places, pa.py_buffer(rows.id_bytes))


def refuse_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What is wrong with the objects of a partition."""
    analyzer = Analyzer(0, 0)
    for table in gather_rows(batches):
        dead = decode_block(table, analyzer).dead
        if dead:
            ids = table["id"].take([letter.event for letter in dead]).combine_chunks()
            errors = pa.array([letter.error for letter in dead], pa.string())
            yield pa.RecordBatch.from_arrays([ids, errors], names=["id", "error"])


def decode_block(table: pa.Table, analyzer: Analyzer) -> DecodedBlock:
    """Objects in the intake's form as a block; they are all of one time."""
    size = table.num_rows
    columns = {"ts_us": pa.repeat(pa.scalar(0, pa.int64()), size)}
    for name in ("lon", "lat", "lon_text", "lat_text", "wkb", "data", "data_text"):
        columns[name] = table[name] if name in table.column_names else pa.nulls(size)
    columns |= {"id": table["id"], "text": table["text"]}
    return decode_columns(object_columns(pa.table(columns)), analyzer, None, 0)


def gather_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Rows in tables of a block's size: matching few at a time costs more."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
        if count >= MOST_ROWS:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)


def passing_folder() -> Path:
    """A folder that goes away with this process."""
    folder = Path(tempfile.mkdtemp(prefix="placewire-match-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "state"
