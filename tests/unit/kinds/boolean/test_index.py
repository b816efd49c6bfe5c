"""The contract of the boolean index: whatever the rows and the objects, it equals the scan."""

from __future__ import annotations

import json
import math
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import oracle
from placewire.ingest.decode import ObjectRows, decode_lines
from placewire.kinds.boolean.explain import count_probe
from placewire.kinds.boolean.index import build_index, empty_index
from placewire.kinds.boolean.kernels.match import (
    object_meeting_postings,
    objects_matching_postings,
    objects_satisfying_rows,
)
from placewire.kinds.boolean.kernels.postings import (
    ROW,
    BooleanIndex,
    placements_to_postings,
    placements_to_runs,
    rows_to_covers,
)
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import make_probe, match_segment, scan_segment
from placewire.kinds.candidates import Matches
from placewire.model.expression import COVER_ANY
from placewire.model.regions import BOX, CIRCLE, EVERYWHERE, POLYGON
from placewire.model.subscriptions import (
    NEVER_US,
    SubscriptionRows,
    concat_rows,
    no_rows,
    take_rows,
)
from placewire.segments.compaction import MergeSource, merge_segments
from placewire.segments.live import LiveSegments
from placewire.segments.segment import Segment, open_segment, whole_rows, write_segment
from placewire.storage.layout import StateDir
from placewire.text.analyzer import Analyzer

ANALYZER = Analyzer(3, 5)
NOON = "2026-03-01T12:00:00Z"
NOON_US = 1_772_366_400_000_000
WORDS = [f"w{n}" for n in range(40)]
NO_BITS = np.empty(0, np.uint64)


class World(NamedTuple):
    """Rows and objects as decoded, and what they were decoded from."""

    rows: SubscriptionRows
    objects: ObjectRows
    codes: NDArray[np.uint32]
    lines: list[dict[str, Any]]


def decode_world(lines: list[dict[str, Any]]) -> World:
    raw = np.frombuffer(b"\n".join(json.dumps(line).encode() for line in lines), np.uint8)
    block = decode_lines(raw, 0, ANALYZER, None, 0)
    assert block.dead == []
    return World(block.rows, block.objects, block.codes, lines)


def probe_of(world: World, nows_us: NDArray[np.int64] | None = None) -> Probe:
    o = world.objects
    nows = o.now_us if nows_us is None else nows_us
    return make_probe(world.codes, o.lon, o.lat, nows, o.term_offsets, o.terms)


def keys(matches: Matches) -> NDArray[np.uint64]:
    """Each match as one number, in order, none of them twice."""
    found = np.sort(matches.object.astype(np.uint64) << np.uint64(32) | matches.row)
    assert (np.diff(found) > 0).all(), "a pair came twice"
    return found


def pairs(matches: Matches) -> list[tuple[int, int]]:
    """Matches as pairs of object and row, in order."""
    return [(key >> 32, key & 0xFFFFFFFF) for key in keys(matches).tolist()]


def check_equals_scan(probe: Probe, segment: Segment, dead: NDArray[np.uint64] = NO_BITS) -> int:
    """The index finds what the scan finds, and knows until when that surely stays true."""
    expected = scan_segment(probe, segment, dead)
    got = match_segment(probe, segment, dead)
    assert np.array_equal(keys(got), keys(expected))
    assert got.next_expiry_us <= expected.next_expiry_us  # sooner only costs a second look
    return int(got.object.size)


class Maker:
    """Random rows and objects around busy places, so that lists grow long and cells fine."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.centres = np.array(
            [[-73.98, 40.75], [0.0, 0.0], [179.99, -10.0], [28.97, 41.0], [12.0, 89.9]]
        )

    def pick(self, *values: Any) -> Any:
        return values[int(self.random.integers(len(values)))]

    def point(self) -> tuple[float, float]:
        if self.random.random() < 0.15:
            return (
                self.pick(-180.0, 180.0, 0.0, -74.0, self.random.uniform(-180, 180)),
                self.pick(-90.0, 90.0, 0.0, 41.0, self.random.uniform(-90, 90)),
            )
        spread = self.pick(0.001, 0.02, 0.5)
        lon, lat = self.centres[self.random.integers(len(self.centres))]
        lon += self.random.normal(0, spread)
        lat += self.random.normal(0, spread)
        lon = (lon + 180) % 360 - 180
        # Coarse coordinates put points on edges and corners.
        digits = self.pick(2, 3, 15)
        return round(float(lon), digits), round(float(np.clip(lat, -90, 90)), digits)

    def word(self) -> str:
        return WORDS[min(int(self.random.zipf(1.3)) - 1, len(WORDS) - 1)]

    def region(self) -> dict[str, Any] | None:
        kind = self.random.random()
        lon, lat = self.point()
        reach = self.pick(0.0, 0.001, 0.01, 0.1, 3.0)
        west, east = (lon - reach + 180) % 360 - 180, (lon + reach + 180) % 360 - 180
        if kind < 0.55:
            if reach == 0.0:
                west = east = lon
            return {"box": [west, max(lat - reach, -90.0), east, min(lat + reach, 90.0)]}
        if kind < 0.7:
            radius = self.pick(0.5, 100.0, 3000.0, 2e5, 1.2e7, 3e7)
            return {"circle": {"lon": lon, "lat": lat, "radius_m": radius}}
        if kind < 0.8:
            ring = [
                [float(np.clip(lon + x, -180, 180)), float(np.clip(lat + y, -90, 90))]
                for x, y in self.random.normal(0, reach, (5, 2))
            ]
            return {"polygon": [[*ring, ring[0]]]}
        if kind < 0.9:
            return self.pick(
                {"box": [-180, -90, 180, 90]},
                {"box": [170, -60, -170, 60]},
                {"box": [180, -90, -180, 90]},
                {"box": [0.5, -90, 0.4999999, 90]},
            )
        return None

    def tree(self, depth: int = 0) -> Any:
        if depth == 3 or self.random.random() < 0.4:
            return self.word()
        kind = self.pick("all", "any", "none")
        return {kind: [self.tree(depth + 1) for _ in range(self.random.integers(1, 4))]}

    def where(self) -> Any:
        words = [self.word() for _ in range(self.random.integers(1, 5))]
        return self.pick(
            words[0],
            " AND ".join(words),
            " OR ".join(words),
            f"{words[0]} AND NOT {words[-1]}",
            f"NOT {words[0]}",
            {"none": words},
            f"{words[0]} OR NOT {words[-1]}",
            f"({words[0]} OR {words[-1]}) AND ({self.word()} OR {self.word()})",
            self.tree(),
            None,
        )

    def subscribe(self, number: int) -> dict[str, Any]:
        line = {"type": "subscribe", "id": f"s{number}", "ts": NOON, "kind": "boolean"}
        region, where = self.region(), self.where()
        if region is None and where is None:
            where = self.word()
        if region is not None:
            line["region"] = region
        if where is not None:
            line["where"] = where
        if self.random.random() < 0.2:
            line["expires"] = f"2026-03-01T12:{self.random.integers(60):02d}:00Z"
        return line

    def object(self, number: int) -> dict[str, Any]:
        lon, lat = self.point()
        words = " ".join(self.word() for _ in range(self.random.integers(0, 9)))
        return {
            "type": "object", "id": f"o{number}", "ts": NOON, "lon": lon, "lat": lat, "text": words,
        }  # fmt: skip

    def world(self, rows: int, objects: int) -> World:
        return decode_world(
            [self.subscribe(n) for n in range(rows)] + [self.object(n) for n in range(objects)]
        )

    def bits(self, rows: int, share: float) -> NDArray[np.uint64]:
        mask = np.zeros((rows // 64 + 1) * 64, np.uint8)
        mask[:rows] = self.random.random(rows) < share
        return np.packbits(mask, bitorder="little").view(np.uint64)


@pytest.fixture(scope="module")
def big() -> World:
    """Enough rows that the lists of frequent words descend to fine cells."""
    return Maker(1).world(6_000, 700)


@pytest.fixture(scope="module")
def big_segment(big: World) -> Segment:
    return make_boolean_segment(big.rows)


def test_the_big_world_has_everything(big: World, big_segment: Segment) -> None:
    assert set(big.rows.region_kind.tolist()) == {EVERYWHERE, BOX, CIRCLE, POLYGON}
    assert (big.rows.box[:, 0] > big.rows.box[:, 2]).any()
    assert (big.rows.cover_mode == COVER_ANY).any()
    assert (big.rows.expires_us < NEVER_US).any()
    assert np.diff(big.rows.literal_offsets).min() == 0
    assert big_segment.index.run_level.max() >= 12, "no list went down to fine cells"
    assert np.unique(big_segment.index.run_level).size >= 5


def test_equals_scan(big: World, big_segment: Segment) -> None:
    assert check_equals_scan(probe_of(big), big_segment) > 10_000


@pytest.mark.parametrize("share", [0.001, 0.3, 1.0])
def test_ended_rows_do_not_match(big: World, big_segment: Segment, share: float) -> None:
    dead = Maker(2).bits(big.rows.total, share)
    found = check_equals_scan(probe_of(big), big_segment, dead)
    assert (found == 0) == (share == 1.0)


def test_expired_rows_do_not_match(big: World, big_segment: Segment) -> None:
    minutes = np.random.default_rng(3).integers(-5, 65, big.objects.total)
    nows = NOON_US + 60_000_000 * minutes  # on the very microsecond of many an `expires`
    check_equals_scan(probe_of(big, nows), big_segment)
    check_equals_scan(probe_of(big, np.full_like(nows, NEVER_US - 1)), big_segment)
    check_equals_scan(probe_of(big, np.full_like(nows, -(1 << 62))), big_segment)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("rows", "objects"), [(1, 40), (17, 40), (300, 200), (1500, 300)])
def test_random_worlds_equal_scan(seed: int, rows: int, objects: int) -> None:
    maker = Maker(100 + seed)
    world = maker.world(rows, objects)
    segment = make_boolean_segment(world.rows)
    probe = probe_of(world)
    check_equals_scan(probe, segment)
    check_equals_scan(probe, segment, maker.bits(rows, 0.2))


@pytest.mark.parametrize(
    "build",
    [
        {"short_list": 1},
        {"short_list": 1, "most_cells": 1},
        {"short_list": 1, "most_cells": 64, "stop_levels": tuple(range(17))},
        {"stop_levels": (0,)},
        {"stop_levels": (0, 16), "short_list": 4, "most_cells": 4},
        {"short_list": 10**9},
    ],
)
def test_no_tuning_changes_what_matches(build: dict[str, Any]) -> None:
    world = Maker(7).world(1_200, 300)
    segment = make_boolean_segment(world.rows)._replace(index=build_index(world.rows, **build))
    assert check_equals_scan(probe_of(world), segment) > 100


def test_the_scan_itself_equals_the_oracle() -> None:
    world = Maker(11).world(200, 150)
    found = set(pairs(scan_segment(probe_of(world), make_boolean_segment(world.rows))))
    analyzer = oracle.default_analyzer
    expected = set()
    for o, event in enumerate(world.objects.event.tolist()):
        line = world.lines[event]
        terms = frozenset(analyzer(line["text"]))
        for row in range(200):
            asked = world.lines[row]
            if "expires" in asked and asked["expires"] <= NOON:
                continue
            if "region" in asked:
                region = oracle.read_region(asked["region"])
                if not region(line["lon"], line["lat"]):
                    continue
            if "where" in asked and not oracle.read_where(asked["where"], analyzer).holds(terms):
                continue
            expected.add((o, row))
    assert found == expected
    assert len(expected) > 300


def test_edges_and_corners_survive_rounding_to_32_bits() -> None:
    """Boxes and points one unit in the last place apart, where 32 bits cannot tell them apart."""
    base = 73.987654321
    steps = [base]
    for _ in range(6):
        steps.append(math.nextafter(steps[-1], 180))
    boxes = [[a, -1, b, 1] for a in steps for b in steps]
    lines: list[dict[str, Any]] = [
        {"type": "subscribe", "id": f"s{n}", "ts": NOON, "kind": "boolean", "region": {"box": box}}
        for n, box in enumerate(boxes)
    ]
    lines += [
        {"type": "object", "id": "o", "ts": NOON, "lon": lon, "lat": lat, "text": ""}
        for lon in [*steps, math.nextafter(base, 0), math.nextafter(steps[-1], 180)]
        for lat in (0, 1, -1, math.nextafter(1, 2))
    ]
    world = decode_world(lines)
    assert check_equals_scan(probe_of(world), make_boolean_segment(world.rows)) > 100


# --- degenerate indexes and blocks ---


def test_an_empty_index_matches_nothing() -> None:
    world = Maker(5).world(1, 50)
    segment = make_boolean_segment(no_rows())
    assert pairs(match_segment(probe_of(world), segment)) == []
    for built, empty in zip(build_index(no_rows()), empty_index(), strict=True):
        assert np.array_equal(built, empty)


def test_an_empty_block_matches_nothing(big_segment: Segment) -> None:
    world = Maker(5).world(1, 1)
    none = make_probe(
        *(np.empty(0, array.dtype) for array in (world.codes, world.objects.lon)),
        np.empty(0, np.float64),
        np.empty(0, np.int64),
        np.zeros(1, np.int64),
        np.empty(0, np.uint64),
    )
    assert pairs(match_segment(none, big_segment)) == []


def test_rows_that_are_all_alike() -> None:
    """Thousands of equal rows in one point: a list that no finer cell can shorten."""
    line = {"type": "subscribe", "id": "s", "ts": NOON, "kind": "boolean", "where": "w1"}
    line["region"] = {"box": [1, 1, 1, 1]}
    placed = {"type": "object", "id": "o", "ts": NOON, "lon": 1, "lat": 1, "text": "w1"}
    world = decode_world([{**line, "id": f"s{n}"} for n in range(3_000)] + [placed] * 3)
    assert check_equals_scan(probe_of(world), make_boolean_segment(world.rows)) == 9_000


def test_duplicate_ids_are_different_rows() -> None:
    """Inside one batch an id may be replaced many times: every version is a row of its own."""
    lines = [dict(Maker(8).subscribe(0), id="same") for _ in range(1)]
    lines += [dict(line, id="same") for line in map(Maker(9).subscribe, range(200))]
    world = decode_world([*lines, *map(Maker(9).object, range(100))])
    assert world.rows.total == 201
    assert check_equals_scan(probe_of(world), make_boolean_segment(world.rows)) > 0


# --- covers ---


def postings_by_row(index: BooleanIndex) -> dict[int, list[int]]:
    """For each row the number of its postings in every cell of any level that has any."""
    cells: dict[int, dict[tuple[int, int], int]] = {}
    for r in range(index.run_level.size):
        for c in range(int(index.run_cells[r]), int(index.run_cells[r + 1])):
            for p in range(int(index.cell_offsets[c]), int(index.cell_offsets[c + 1])):
                row = int(index.postings[p, ROW])
                cell = (int(index.run_level[r]), int(index.cell_code[c]))
                counts = cells.setdefault(row, {})
                counts[cell] = counts.get(cell, 0) + 1
    return {row: list(counts.values()) for row, counts in cells.items()}


def test_a_wide_expression_costs_no_more_than_its_tokens() -> None:
    where = {"all": [{"any": [f"a{n}", f"b{n}"]} for n in range(128)]}
    line = {"type": "subscribe", "id": "wide", "ts": NOON, "kind": "boolean", "where": where}
    line["region"] = {"box": [0, 0, 3, 3]}
    maker = Maker(4)
    full = " ".join(f"a{n}" if n % 2 else f"b{n}" for n in range(128))
    objects = [
        {"type": "object", "id": "o", "ts": NOON, "lon": 1, "lat": 1, "text": text}
        for text in (full, full.replace("a7 ", ""), "a0", "", f"{full} a0 b1")
    ]
    world = decode_world([line, *map(maker.subscribe, range(500)), *objects])
    segment = make_boolean_segment(world.rows)
    costs = postings_by_row(segment.index)[0]
    assert max(costs) <= 256
    probe = probe_of(world)
    check_equals_scan(probe, segment)
    events = world.objects.event
    hits = [int(events[o]) - 501 for o, row in pairs(match_segment(probe, segment)) if row == 0]
    assert sorted(hits) == [0, 4]


def test_a_conjunction_is_posted_under_one_term() -> None:
    """The least frequent keyword: once in each of its cells."""
    lines = [
        {"type": "subscribe", "id": f"s{n}", "ts": NOON, "kind": "boolean", "where": f"common r{n}"}
        for n in range(50)
    ]
    world = decode_world(lines)
    index = make_boolean_segment(world.rows).index
    assert index.postings.shape[0] == 50
    assert index.run_offsets.size - 1 == 50, "each under its own rare term"


def test_negative_rows_are_posted_once_and_found_by_any_text() -> None:
    line = {"type": "subscribe", "id": "s", "ts": NOON, "kind": "boolean", "where": "NOT w1"}
    placed = {"type": "object", "id": "o", "ts": NOON, "lon": 0, "lat": 0}
    texts = ["", "w2", "w1", "w2 w3 w1", "!"]
    world = decode_world([line, *({**placed, "text": text} for text in texts)])
    segment = make_boolean_segment(world.rows)
    assert segment.index.postings.shape[0] == 1
    found = [int(world.objects.event[o]) for o, _ in pairs(match_segment(probe_of(world), segment))]
    assert sorted(found) == [1, 2, 5]


# --- on disk, pickled, merged ---


def test_a_segment_mapped_from_disk_is_the_same(
    tmp_path: Path, big: World, big_segment: Segment
) -> None:
    size = write_segment(tmp_path / "s.plw", big_segment)
    assert (tmp_path / "s.plw").stat().st_size == size
    mapped = open_segment(tmp_path / "s.plw")
    for built, read in zip(big_segment.index, mapped.index, strict=True):
        assert np.array_equal(built, read)
        assert built.dtype == read.dtype
    for name, built in whole_rows(big_segment)._asdict().items():
        assert np.array_equal(built, getattr(whole_rows(mapped), name)), name
    dead = Maker(6).bits(big.rows.total, 0.1)
    probe = probe_of(big)
    found = match_segment(probe, mapped, dead)
    assert np.array_equal(keys(found), keys(match_segment(probe, big_segment, dead)))


def test_an_empty_segment_can_be_mapped(tmp_path: Path) -> None:
    write_segment(tmp_path / "s.plw", make_boolean_segment(no_rows()))
    mapped = open_segment(tmp_path / "s.plw")
    assert mapped.rows.total == 0
    assert pairs(match_segment(probe_of(Maker(5).world(1, 20)), mapped)) == []


def test_pickling_keeps_everything(tmp_path: Path, big: World, big_segment: Segment) -> None:
    write_segment(tmp_path / "s.plw", big_segment)
    probe = probe_of(big)
    expected = keys(match_segment(probe, big_segment))
    for segment in (big_segment, open_segment(tmp_path / "s.plw")):
        again = pickle.loads(pickle.dumps(segment))
        found = match_segment(pickle.loads(pickle.dumps(probe)), again)
        assert np.array_equal(keys(found), expected)


def test_kernels_have_one_signature(tmp_path: Path, big: World, big_segment: Segment) -> None:
    """Structures made here, mapped or pickled are of one type to the compiler."""
    write_segment(tmp_path / "s.plw", big_segment)
    probe = probe_of(big)
    for segment in (big_segment, open_segment(tmp_path / "s.plw")):
        for some in (segment, pickle.loads(pickle.dumps(segment))):
            for dead in (NO_BITS, Maker(6).bits(big.rows.total, 0.1)):
                check_equals_scan(pickle.loads(pickle.dumps(probe)), some, dead)
                check_equals_scan(probe, some, dead)
            count_probe(probe, some.index)
    for kernel in (
        objects_matching_postings,
        objects_satisfying_rows,
        object_meeting_postings,
        rows_to_covers,
        placements_to_runs,
        placements_to_postings,
    ):
        assert len(kernel.signatures) == 1, kernel  # type: ignore[attr-defined]


def ids_of(rows: SubscriptionRows) -> list[bytes]:
    raw, at = rows.id_bytes.tobytes(), rows.id_offsets.tolist()
    return [raw[at[i] : at[i + 1]] for i in range(rows.total)]


def is_set(bits: NDArray[np.uint64], row: int) -> bool:
    return bool(bits.size and (int(bits[row >> 6]) >> (row & 63)) & 1)


def test_merging_keeps_exactly_the_live_rows(big: World) -> None:
    maker = Maker(12)
    cuts = [0, 1, 700, 2_500, 2_500, 6_000]
    sources = []
    for first, last in pairwise(cuts):
        part = make_boolean_segment(take_rows(big.rows, np.arange(first, last)))
        sources.append(MergeSource(part, maker.bits(last - first, maker.pick(0.1, 0.6))))
    sources[1] = MergeSource(sources[1][0], NO_BITS)
    now_us = NOON_US + 30 * 60_000_000
    merged = merge_segments(sources, now_us)
    kept: list[bytes] = []
    for (source, dead, *_), row_map in zip(sources, merged.row_maps, strict=True):
        ids = ids_of(source.rows)
        for row, new in enumerate(row_map.tolist()):
            alive = not is_set(dead, row) and source.rows.expires_us[row] > now_us
            assert (new >= 0) == alive
            if alive:
                assert new == len(kept)
                kept.append(ids[row])
    assert ids_of(merged.segment.rows) == kept
    nows = np.full(big.objects.total, now_us)
    probe = probe_of(big, nows)
    check_equals_scan(probe, merged.segment)
    apart = []
    for (source, dead, *_), row_map in zip(sources, merged.row_maps, strict=True):
        found = match_segment(probe, source, dead)
        apart.append(keys(found._replace(row=row_map[found.row].astype(np.uint32))))
    together = keys(match_segment(probe, merged.segment))
    assert np.array_equal(together, np.sort(np.concatenate(apart)))


def test_merging_what_has_all_ended_gives_nothing() -> None:
    rows = Maker(3).world(100, 0).rows
    all_ended = np.full(2, np.iinfo(np.uint64).max, np.uint64)
    assert (
        merge_segments(
            [MergeSource(make_boolean_segment(rows), all_ended)], NOON_US
        ).segment.rows.total
        == 0
    )
    assert (
        merge_segments(
            [MergeSource(make_boolean_segment(no_rows()), NO_BITS)], NOON_US
        ).segment.rows.total
        == 0
    )


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_compaction_never_changes_what_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, inline: bool
) -> None:
    """Random adds and ends, as batches make them; merged in the batch or behind it."""
    monkeypatch.setattr("placewire.segments.compaction.SMALLEST_TIER", 64)
    monkeypatch.setattr("placewire.segments.live.INLINE_ROWS", 10**9 if inline else -1)
    maker = Maker(50 + seed)
    world = maker.world(2_000, 120)
    probe = probe_of(world)
    state = StateDir(tmp_path / "state")
    state.open()
    live = LiveSegments(state, [])
    truth: dict[bytes, int] = {}
    next_row = 0
    most = 0
    for batch in range(60):
        count = int(maker.pick(0, 1, 5, 60))
        picked = np.arange(next_row, min(next_row + count, world.rows.total))
        next_row += picked.size
        if picked.size:
            live.add(batch, make_boolean_segment(take_rows(world.rows, picked)))
            names = ids_of(take_rows(world.rows, picked))
            truth |= dict(zip(names, picked.tolist(), strict=True))
        share = maker.pick(0.0, 0.0, 0.05, 0.5)
        for segment in live.segments:
            ids = ids_of(segment.segment.rows)
            leaving = [
                row
                for row, name in enumerate(ids)
                if not is_set(segment.dead, row) and maker.random.random() < share
            ]
            segment.end(np.array(leaving, np.int64))
            for row in leaving:
                del truth[ids[row]]
        live.compact(batch, -(1 << 62))
        entries = live.save(batch)
        if batch % 9 == 8:  # everything again from the files, as after a crash
            live.close()
            live = LiveSegments(state, entries)
        most = max(most, len(live.segments))
        found = set()
        for one, dead in live.pairs():
            ids = ids_of(one.rows)
            for o, row in pairs(match_segment(probe, one, dead)):
                assert (o, ids[row]) not in found, "a row is live in two segments"
                found.add((o, ids[row]))
        alive = make_boolean_segment(
            take_rows(world.rows, np.array(list(truth.values()), np.int64))
        )
        ids = ids_of(alive.rows)
        assert found == {(o, ids[row]) for o, row in pairs(scan_segment(probe, alive))}
    live.wait()
    live.compact(60, -(1 << 62))
    live.wait()
    live.close()
    assert len(live.segments) <= 10
    if inline:
        assert most <= 10
    assert len(truth) > 20


def test_concatenating_and_taking_rows_is_identity(big: World) -> None:
    random = np.random.default_rng(4)
    order = random.permutation(big.rows.total)
    back = np.argsort(order)
    shuffled = concat_rows([take_rows(big.rows, part) for part in np.array_split(order, 7)])
    for name, array in take_rows(shuffled, back)._asdict().items():
        assert np.array_equal(array, getattr(big.rows, name)), name
