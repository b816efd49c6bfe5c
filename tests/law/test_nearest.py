"""`nearest` subscriptions through long lives: deltas folded, segments merged, result_objects
tidied."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import replay
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.kinds.nearest.kind import Pacer
from placewire.model.kinds import NEAREST
from placewire.model.settings import Settings
from placewire.sinks.files import FileSink
from placewire.storage.layout import StateDir

WORDS = ["coffee", "tea", "free", "late", "the", "in", "old", "new"]


def long_log(seed: int, events: int = 700) -> bytes:
    """Objects that come ever nearer to a few places, and subscriptions that come and go."""
    choose = random.Random(seed)
    lines = []
    for number in range(events):
        spread = 40.0 / (1 + number / 40)
        ts = f"2026-03-01T12:{number // 60 % 60:02d}:{number % 60:02d}Z"
        event: dict[str, Any] = {"ts": ts, "id": f"o{number}"}
        centre = choose.choice([(0, 0), (179.99, 60), (0, 89.9), (-100, -40)])
        lon = (centre[0] + choose.gauss(0, spread) + 180) % 360 - 180
        lat = max(-90.0, min(90.0, centre[1] + choose.gauss(0, spread)))
        point = {"lon": round(lon, 3), "lat": round(lat, 3)}
        what = choose.random()
        if what < 0.75:
            event |= {"type": "object", **point}
            event["text"] = " ".join(choose.sample(WORDS, choose.randint(0, 4)))
            if choose.random() < 0.1:
                event["data"] = {"n": number}
        elif what < 0.95:
            event |= {"type": "subscribe", "kind": "nearest", **point, "k": choose.randint(1, 5)}
            event["id"] = f"s{choose.randrange(60)}"
            event["keywords"] = choose.sample(WORDS, choose.randint(1, 3))
            if choose.random() < 0.4:
                event["mode"] = "all"
            if choose.random() < 0.2:
                event["within_m"] = 10 ** choose.uniform(4, 7)
            if choose.random() < 0.2:
                later = number + choose.randint(0, 200)
                event["expires"] = f"2026-03-01T12:{later // 60 % 60:02d}:{later % 60:02d}Z"
        else:
            event |= {"type": "unsubscribe", "id": f"s{choose.randrange(60)}"}
        lines.append(json.dumps(event).encode())
    return b"\n".join(lines) + b"\n"


def run_in_lives(log: bytes, folder: Path, plan: str, workers: int, rows: int, life: int) -> bytes:
    """Replay, giving up and beginning again every `life` batches."""
    path = folder / "log.jsonl"
    path.write_bytes(log)
    state = StateDir(folder / "state")
    done = False
    while not done:
        coordinator = Coordinator(state, Settings(), identify_log(path), plan, workers, 100)
        sink = FileSink(state, with_data=True)
        sink.deliver(coordinator.latest)
        done = True
        for number, manifest in enumerate(
            replay_log(coordinator, LogSource(str(path)), rows, workers)
        ):
            sink.deliver(manifest)
            coordinator.delivered = manifest.batch
            if number == life:
                done = False
                break
        coordinator.close()
    return sink.results.read_bytes()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that usually waits for a long run happens soon."""
    monkeypatch.setattr("placewire.segments.live.MOST_DELTAS", 3)
    monkeypatch.setattr("placewire.kinds.object_ids.MAX_FILES", 4)
    monkeypatch.setattr("placewire.kinds.object_ids.MERGED_FILES", 3)
    monkeypatch.setattr("placewire.kinds.object_ids.MIN_SWEPT", 20)
    monkeypatch.setattr("placewire.segments.thresholds.KEPT_SEGMENTS", 2)
    monkeypatch.setattr("placewire.kinds.nearest.match.FIRST_CHUNK", 2)
    monkeypatch.setattr("placewire.kinds.nearest.match.ROOM", 8)


@pytest.mark.parametrize(
    ("plan", "workers", "rows", "inline"),
    [
        pytest.param("shared", 1, 1, 40_000, marks=pytest.mark.slow),
        ("shared", 2, 17, 0),
        ("shared", 3, 60, 0),
        pytest.param("nearest=dkm", 7, 17, 0, marks=pytest.mark.slow),
        ("nearest=kop,boolean=kdt", 2, 40, 40_000),
        ("nearest=sop", 3, 40, 0),
        ("nearest=ps2", 2, 40, 0),
        ("nearest=sstd", 3, 23, 40_000),
        ("auto", 2, 40, 0),
        ("scan", 1, 60, 40_000),
    ],
)
def test_long_lives_equal_the_oracle(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hasty: None,
    plan: str,
    workers: int,
    rows: int,
    inline: int,
) -> None:
    """With merges in the batch or beside it (`inline`), in several lives of the process."""
    monkeypatch.setattr("placewire.segments.live.INLINE_ROWS", inline)
    for seed in range(3):
        log = long_log(seed)
        expected = replay(log, with_data=True)
        assert len(expected.results) > 300
        assert any(result["drop"] for result in expected.results)
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = run_in_lives(log, folder, plan, workers, rows, life=11)
        assert [json.loads(line) for line in found.splitlines()] == expected.results


def test_plans_may_change_between_two_lives(tmp_path: Path, hasty: None) -> None:
    """Segments dealt out under one plan are looked at under another, and by fewer workers."""
    log = long_log(9)
    expected = replay(log, with_data=True)
    lines = log.splitlines(keepends=True)
    for number, (plan, workers) in enumerate(
        [("nearest=dkm", 5), ("shared", 1), ("nearest=kop", 2), ("nearest=sstd", 3), ("auto", 2)]
    ):
        found = run_in_lives(
            b"".join(lines[: 140 * (number + 1)]), tmp_path, plan, workers, 20, life=100
        )
    assert [json.loads(line) for line in found.splitlines()] == expected.results


def test_a_plan_prunes_the_broadcast(tmp_path: Path) -> None:
    """A worker does not get objects that none of its circles may want."""
    from placewire.batch.local_runner import run_blocks
    from placewire.ingest.log import batch_end

    path = tmp_path / "log.jsonl"
    asked = [
        {
            "type": "subscribe", "id": f"s{i}", "ts": "2026-03-01T12:00:00Z", "kind": "nearest",
            "lon": i, "lat": 0, "keywords": ["coffee" if i % 2 else "tea"], "k": 1,
        }
        for i in range(20)
    ]  # fmt: skip
    texts = ["coffee", "tea", "nothing of the kind"]
    objects = [
        {
            "type": "object", "id": f"o{i}", "ts": "2026-03-01T12:00:00Z",
            "lon": i % 20, "lat": 0, "text": texts[i % 3],
        }
        for i in range(120)
    ]  # fmt: skip
    path.write_bytes(b"".join(json.dumps(e).encode() + b"\n" for e in [*asked, *objects]))
    coordinator = Coordinator(
        StateDir(tmp_path / "state"), Settings(), identify_log(path), "nearest=dkm", 4, 60
    )
    sent = []
    log = LogSource(str(path))
    while refs := log.plan(coordinator.latest.offset, 20, 1):

        def run(context: Any, refs: Any = refs) -> Any:
            ran = run_blocks(context, refs)
            sent.append(sum(block.sent for block in ran.blocks))
            return ran

        coordinator.step(coordinator.latest.batch + 1, batch_end(refs), run)
    coordinator.close()
    assert len(sent) == 7
    assert 0 < sent[-1] < 4 * 20 * 2 / 3, sent


def test_radii_and_limits_bound_distances() -> None:
    """The padded test in 32 bits lets every point of a circle pass, wherever it is."""
    from placewire.kernels.space.circles import circles_to_boxes, points_to_units, radii_to_limits
    from placewire.kernels.space.regions import box_contains_point, distance_m

    make = np.random.default_rng(3)
    for _ in range(3_000):
        lon, lat = make.uniform(-180, 180), make.choice([90, -90, 89.99999, make.uniform(-90, 90)])
        near = 10 ** make.uniform(-7, 2)
        other_lon = (lon + make.normal() * near + 180) % 360 - 180
        other_lat = float(np.clip(lat + make.normal() * near, -90, 90))
        radius = distance_m(lon, lat, other_lon, other_lat)
        a, b = points_to_units(np.array([lon, other_lon]), np.array([lat, other_lat]))
        chord = np.float32(((a - b) ** 2).sum(dtype=np.float32))
        assert chord <= radii_to_limits(np.array([radius]))[0]
        box = circles_to_boxes(np.array([lon]), np.array([lat]), np.array([radius]))[0]
        assert box_contains_point(box, other_lon, other_lat), (lon, lat, other_lon, other_lat)


def test_an_index_follows_the_balls_that_objects_meet(tmp_path: Path) -> None:
    """Many subscriptions that nothing comes for must not hide that the others' circles shrank."""
    choose = random.Random(1)
    lines = [
        {
            "type": "subscribe", "id": f"s{i}", "ts": "2026-03-01T12:00:00Z", "kind": "nearest",
            "lon": choose.uniform(-10, 10), "lat": choose.uniform(-10, 10), "k": 1,
            "keywords": ["coffee" if i % 5 < 2 else f"rare{i}"],
        }
        for i in range(2_000)
    ]  # fmt: skip
    lines += [
        {
            "type": "object", "id": f"o{i}", "ts": "2026-03-01T12:00:00Z", "text": "coffee",
            "lon": choose.uniform(-10, 10), "lat": choose.uniform(-10, 10),
        }
        for i in range(3_000)
    ]  # fmt: skip
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    coordinator = Coordinator(StateDir(tmp_path / "state"), Settings(), identify_log(path))
    looked = []
    for _ in replay_log(coordinator, LogSource(str(path)), 500, 1):
        pacer = coordinator.settler.memory[1]
        assert isinstance(pacer, Pacer)
        looked.append(pacer.looked_an_object)
    coordinator.close()
    assert looked[-1] is not None
    assert looked[4] is not None
    assert looked[-1] < looked[4] / 20, looked


def test_batches_are_short_only_where_objects_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subscriptions without results are loaded in whole batches, then objects come in few."""
    monkeypatch.setattr("placewire.kinds.nearest.kind.MANY_NEAREST", 10)
    monkeypatch.setattr("placewire.kinds.nearest.kind.FIRST_ROWS", 7)
    point = {"ts": "2026-03-01T12:00:00Z", "lon": 0, "lat": 0}
    asked = {"type": "subscribe", "kind": "nearest", **point, "keywords": ["tea"], "k": 1}
    lines = [{**asked, "id": f"s{i}"} for i in range(250)]
    lines += [{"type": "object", "id": f"o{i}", **point, "text": "tea"} for i in range(60)]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    coordinator = Coordinator(StateDir(tmp_path / "state"), Settings(), identify_log(path))
    ends = [m.next_seq for m in replay_log(coordinator, LogSource(str(path)), 100, 1)]
    coordinator.close()
    assert ends == [100, 200, 257, 310]


def test_loads_forget_what_ended_and_what_expired(tmp_path: Path) -> None:
    """Under a plan a worker's load is that of its live subscriptions."""
    path = tmp_path / "log.jsonl"
    lines: list[dict[str, Any]] = []
    for i in range(600):
        ts = f"2026-03-01T12:{i // 60:02d}:{i % 60:02d}Z"
        if i % 3 == 0:
            lines.append({"type": "object", "id": "o", "ts": ts, "lon": 0, "lat": 0, "text": "tea"})
            continue
        asked: dict[str, Any] = {
            "type": "subscribe", "id": f"s{i % 7}", "ts": ts, "kind": "nearest",
            "lon": i % 90, "lat": 0, "keywords": ["tea"], "k": 1,
        }  # fmt: skip
        if i % 2:
            asked |= {"id": f"e{i}", "expires": f"2026-03-01T12:{i // 60:02d}:59Z"}
        lines.append(asked)
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    coordinator = Coordinator(
        StateDir(tmp_path / "state"), Settings(), identify_log(path), "nearest=kop", 2, 50
    )
    for _ in replay_log(coordinator, LogSource(str(path)), 20, 1):
        pass
    loads = coordinator.planners.rows[NEAREST].strategy.loads
    assert loads is not None
    coordinator.close()
    assert 7 <= loads.sum() <= 60, loads


def test_all_may_expire_before_the_plan_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge under way may leave no subscription to plan for."""
    monkeypatch.setattr("placewire.segments.live.INLINE_ROWS", 0)
    for seed in range(6):
        choose = random.Random(seed)
        lines = []
        for i in range(120):
            ts = f"2026-03-01T12:{i // 60:02d}:{i % 60:02d}Z"
            point = {"ts": ts, "lon": choose.uniform(-9, 9), "lat": 0}
            if choose.random() < 0.5:
                soon = i + choose.randint(1, 4)
                lines.append(
                    {
                        "type": "subscribe", "id": f"s{i}", "kind": "nearest", **point, "k": 1,
                        "keywords": ["tea"],
                        "expires": f"2026-03-01T12:{soon // 60:02d}:{soon % 60:02d}Z",
                    }
                )  # fmt: skip
            else:
                lines.append({"type": "object", "id": f"o{i}", **point, "text": "tea"})
        log = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = run_in_lives(log, folder, "nearest=kop", 2, 1 + seed, life=50)
        expected = replay(log, with_data=True).results
        assert [json.loads(line) for line in found.splitlines()] == expected
