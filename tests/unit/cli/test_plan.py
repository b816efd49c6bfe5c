"""`placewire plan` as a user meets it, what it reads, what it draws, and replaying a saved plan."""

from __future__ import annotations

import gzip
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placewire
from checkout import ROOT
from peers import need_peers
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.cli.main import main
from placewire.cli.maps import (
    MapView,
    can_draw,
    find_view,
    gather_dots,
    paint_leaves,
    scatter_objects,
    worker_colours,
)
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.kernels.space.cells import points_to_codes
from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.plans.boolean.methods import CANDIDATES, METHODS
from placewire.plans.cost.model import Calibration, LoadModel, Prices
from placewire.plans.cost.sstd import gather_statistics
from placewire.plans.leaves import BY_CELL, NO_SPLIT, Leaves, TextSplit, check_leaves, make_leaves
from placewire.plans.names import PLANS, PlanNames, parse_plans
from placewire.plans.route.leaf_route import read_plan, write_plan
from placewire.plans.sample.sample import SIDE
from placewire.plans.sample.sampler import Survey, survey_files
from placewire.storage import arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import read_latest, read_manifest
from profiles import examples

TS = "2026-03-01T12:00:00Z"
KEY = (1, 2)
CALIBRATION = Calibration(LoadModel(per_check=0.0, per_posting=8.0), Prices(), LoadModel())
PAGE = ROOT / "docs" / "concepts" / "plans.md"
WORDS = ("coffee", "tea", "rain", "sale", "flood")


class Command:
    """Runs the command in this process (it is the same `main`), in one folder."""

    def __init__(self, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.capture = capture
        self.patch = patch
        self.out = ""
        self.err = ""

    def run(self, *arguments: object) -> int:
        self.capture.readouterr()
        arrays._open.clear()  # a command of its own has no file open yet
        self.patch.setattr(sys, "argv", ["placewire", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        self.out, self.err = self.capture.readouterr()
        return int(ended.value.code or 0)

    def plan(self, *more: object, log: str = "log.jsonl", workers: int = 3) -> None:
        files = ("--objects", log, "--subscriptions", log)
        assert self.run("plan", *files, "--workers", workers, *more) == 0, self.err

    def refused(self, *arguments: object) -> str:
        """The one clear line of a command that must be refused."""
        assert self.run(*arguments) == 2
        assert "Traceback" not in self.err + self.out
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("placewire: ")
        return self.err

    def table(self) -> dict[str, list[str]]:
        """The lines of the printed table by plan."""
        lines = self.out.splitlines()
        start = next(at for at, line in enumerate(lines) if line.startswith("plan "))
        rows = []
        for line in lines[start + 2 :]:
            if not line.strip():
                break
            rows.append(line)
        assert len({len(line.rstrip()) for line in rows}) == 1, "the lines are not aligned"
        return {line.split()[0]: line.split()[1:] for line in rows}


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    # The same costs on every machine, and none of the time it takes to measure them.
    for module in ("cli.plan", "plans.boolean.methods"):
        monkeypatch.setattr(f"placewire.{module}.calibrate", lambda: CALIBRATION)
    monkeypatch.setattr("placewire.cli.maps.DPI", 30)  # small pictures are as good here
    return Command(capsys, monkeypatch)


def dump(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def placed(id: str, lon: float = 0, lat: float = 0, text: str = "coffee") -> bytes:
    return dump({"type": "object", "id": id, "ts": TS, "lon": lon, "lat": lat, "text": text})


def subscribe(id: str, where: str = "coffee", box: list[float] | None = None) -> bytes:
    event = {"type": "subscribe", "id": id, "ts": TS, "kind": "boolean", "where": where}
    return dump(event if box is None else {**event, "region": {"box": box}})


def unsubscribe(id: str) -> bytes:
    return dump({"type": "unsubscribe", "id": id, "ts": TS})


def write_town(path: Path, objects: int = 300, subscriptions: int = 80) -> bytes:
    """A log of some life on both sides of the Atlantic; gives its bytes."""
    random = np.random.default_rng(5)
    lines = []
    for number in range(subscriptions):
        west, south = random.uniform(-100, 60), random.uniform(-40, 50)
        box = [west, south, west + random.uniform(1, 30), south + random.uniform(1, 30)]
        words = random.choice(WORDS, 2, replace=False)
        lines.append(subscribe(f"s{number}", random.choice([" AND ", " OR "]).join(words), box))
    for number in range(objects):
        lon, lat = random.normal([-74, 40], 8) if number % 2 else random.normal([10, 48], 6)
        lines.append(placed(f"o{number}", lon, lat, " ".join(random.choice(WORDS, 3))))
    content = b"".join(lines)
    path.write_bytes(content)
    return content


def survey_of(objects: Path, subscriptions: Path | None = None, **more: Any) -> Survey:
    options = {"sample": 1000, "sample_subscriptions": 1000, "show": lambda *_: None, **more}
    return survey_files(objects, subscriptions or objects, KEY, **options)


def ids_of(survey: Survey) -> list[str]:
    offsets, whole = survey.rows.id_offsets, survey.rows.id_bytes.tobytes()
    pairs = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    return [whole[start:end].decode() for start, end in pairs]


# --- the table ---


def test_every_plan_has_a_line(command: Command) -> None:
    write_town(Path("log.jsonl"))
    command.plan()
    table = command.table()
    assert list(table) == ["shared", *METHODS]
    assert set(table["shared"][:-1]) == {"-"}
    for name, cells in table.items():
        assert len(cells) == 11, name
    assert "objects 300, subscriptions 80, workers 3\n" in command.out
    verdict = command.out.splitlines()[-1]
    assert verdict.startswith("auto takes ")
    cheapest = min((name for name in ("shared", *CANDIDATES)), key=lambda n: int(table[n][-1]))
    assert int(table[verdict.split()[2].rstrip(":")][-1]) == int(table[cheapest][-1])
    assert not [path for path in Path().iterdir() if path.name != "log.jsonl"]


def test_auto_shows_its_candidates_and_one_name_only_itself(command: Command) -> None:
    write_town(Path("log.jsonl"))
    command.plan("--plan", "auto")
    assert list(command.table()) == ["shared", *CANDIDATES]
    assert "auto takes " in command.out
    command.plan("--plan", "kdt")
    assert list(command.table()) == ["kdt"]
    assert "auto" not in command.out
    command.plan("--plan", "shared")
    assert set(command.table()["shared"]) == {"-"}


def test_the_figures_are_what_one_can_count(command: Command) -> None:
    """Two towns, a worker each: who asks for both is held twice, who is alone once."""
    towns = [[-100.5, 30, -99.5, 31], [99.5, 30, 100.5, 31]]
    log = [subscribe("both", box=[-120, 20, 120, 40]), subscribe("tea", "tea", towns[0])]
    log += [subscribe(f"s{n}", box=towns[n % 2]) for n in range(8)]
    log += [placed(f"o{n}", 100 if n % 2 else -100, 30.5, "coffee") for n in range(50)]
    log += [placed("idle", 100, 30.5, "nothing of note")] * 10
    Path("log.jsonl").write_bytes(b"".join(log))
    command.plan("--plan", "kdtree", workers=2)
    leaves, subscriptions, objects, dropped, *_ = command.table()["kdtree"]
    assert (leaves, subscriptions, objects, dropped) == ("2", "1.10", "1.00", "0.00")
    command.plan("--plan", "termhash", workers=1)
    _, subscriptions, objects, dropped, *_ = command.table()["termhash"]
    assert (subscriptions, objects, dropped) == ("1.00", "0.83", "16.7")


def test_loads_are_measured_by_the_model_that_is_asked_for(command: Command) -> None:
    """Two towns, a worker each: 30 objects meet 4 postings each, 20 meet 2, and 10 none."""
    towns = [[-100.5, 30, -99.5, 31], [99.5, 30, 100.5, 31]]
    log = [subscribe(f"s{n}", box=towns[n % 3 > 0]) for n in range(6)]
    log += [placed(f"o{n}", 100, 30.5) for n in range(30)]
    log += [placed(f"p{n}", -100, 30.5) for n in range(20)]
    log += [placed(f"q{n}", -100, 30.5, "nothing of note") for n in range(10)]
    Path("log.jsonl").write_bytes(b"".join(log))
    found = {}
    for cost, unit in (("load", "ms"), ("tornado", "1000"), ("sstd", "Lmin")):
        command.plan("--plan", "kdtree", "--cost", cost, workers=2)
        heading = command.out.splitlines()[3]
        assert heading.split()[5] == unit  # sstd has none, and the next column's follows
        found[cost] = command.table()["kdtree"][4:6]
    work = 60 + (8 / 300) * (30 * 4 + 20 * 2)
    changes = (1500 + 300) * 60 / 10
    assert found["load"][0] == f"{(300 * work + changes) / 1e6:.2f}"
    assert found["tornado"] == ["0.16", "3.00"]
    assert found["sstd"] == [f"{(30 * 4 + 30 * 2) / 6:.1f}", "2.00"]


def test_auto_takes_what_fits_the_machines(command: Command) -> None:
    """Half of the index fits a machine: with more of them a plan that cuts it is cheaper."""
    write_town(Path("log.jsonl"))
    for module in ("cli.plan", "plans.boolean.methods"):
        command.patch.setattr(f"placewire.{module}.memory_of_machine", lambda: 40 * 220.0)
    costs = []
    for machines in (1, 4):
        command.plan("--plan", "auto", "--machines", machines, workers=4)
        costs.append({name: int(cells[-1]) for name, cells in command.table().items()})
    assert costs[0]["shared"] == costs[1]["shared"]
    assert costs[0]["kdtree"] > 2 * costs[1]["kdtree"]
    assert "auto takes shared" not in command.out
    log, results = Path("log.jsonl"), Path("results.jsonl")
    whys = []
    for number in (None, 4):
        state = Path(f"state-{number}")
        command.patch.setattr(
            "placewire.api.Coordinator",
            lambda *rest, **more: Coordinator(*rest, sample_events=100, **more),
        )
        placewire.replay(
            log, results, plan="auto", workers=4, batch_rows=150, machines=number, state=state
        )
        latest = read_latest(StateDir(state))
        assert latest is not None
        whys.append(latest.leaf_plan.why)
    assert "memory" in whys[0].split(";")[0]
    assert not whys[1].startswith("shared")
    with pytest.raises(Unusable, match="machines: must be 1 or more, got 0"):
        placewire.replay(log, results, machines=0)


def test_statistics_tell_where_objects_are_and_who_asks_there(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = [subscribe(f"s{n}", WORDS[n % 2], [9, 47, 11, 49]) for n in range(3)]
    log += [subscribe("all", "NOT coffee", [-180, -90, 180, 90])]
    log += [placed(f"o{n}", 10, 48) for n in range(30)] + [placed("p", -100, -30)] * 10
    Path("log.jsonl").write_bytes(b"".join(log))
    command.plan("--plan", "grid")
    assert "asking" not in command.out
    command.plan("--plan", "grid", "--statistics")
    lines = command.out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("cell: lon"))
    assert lines[at + 2].split() == [
        "-180.00..180.00", "-90.00..90.00", "40", "100", "100", "2", "100", "25.0",
    ]  # fmt: skip
    assert lines[at + 3] == ""
    assert list(command.table()) == ["grid"]
    monkeypatch.setattr(gather_statistics, "__kwdefaults__", {"capacity": 20, "most": 6})
    command.plan("--plan", "grid", "--statistics")
    lines = command.out.splitlines()
    assert [line.split()[:5] for line in lines[at + 2 : at + 6]] == [
        ["0.00..180.00", "0.00..90.00", "30", "75.0", "100"],
        ["-180.00..0.00", "-90.00..0.00", "10", "25.0", "25.0"],
        ["0.00..180.00", "-90.00..0.00", "0", "0.00", "25.0"],
        ["-180.00..0.00", "0.00..90.00", "0", "0.00", "25.0"],
    ]


@pytest.mark.parametrize(
    "log",
    [b"", b"bad\n", placed("o1"), subscribe("s1"), subscribe("s1") + placed("o1")],
    ids=["empty", "bad", "an object", "a subscription", "one of each"],
)
def test_next_to_nothing_is_enough(command: Command, log: bytes) -> None:
    Path("log.jsonl").write_bytes(log)
    for cost in ("load", "tornado", "sstd"):
        command.plan("--cost", cost, "--statistics", workers=5)
        assert list(command.table()) == ["shared", *METHODS]
    command.plan("--plan", "frequency", "--out", "out", workers=1)
    pictures = {"frequency.png"} if can_draw() else set()
    assert {path.name for path in Path("out").iterdir()} == {"frequency.plan"} | pictures


def test_invalid_lines_are_counted_and_said(command: Command) -> None:
    content = write_town(Path("log.jsonl"))
    Path("log.jsonl").write_bytes(b"\xff\xfe\n" + content + b"not an event\n\n")
    command.plan("--plan", "grid")
    assert "log.jsonl: 3 of 383 events are invalid" in command.out
    assert "the first is event 0: " in command.out
    assert "objects 300, subscriptions 80" in command.out


def test_samples_are_limited(command: Command) -> None:
    write_town(Path("log.jsonl"))
    command.plan("--plan", "grid", "--sample", 100, "--sample-subscriptions", 30)
    assert "objects 100 of 300, subscriptions 30 of 80, workers 3\n" in command.out


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["--plan", "tree"], "tree"),
        (["--plan", "scan"], "scan"),
        (["--plan", "log.jsonl"], "log.jsonl"),
        (["--cost", "euros"], "cost: must be one of load, tornado, sstd, got 'euros'"),
        (["--objects", "log.gz"], "log.gz: must be JSON Lines, got a gzip file"),
        (["--subscriptions", "log.gz"], "log.gz: must be JSON Lines, got a gzip file"),
        (["--workers", "0"], "--workers: must be a whole number, 1..4096, got 0"),
        (["--workers", "5000"], "--workers: must be a whole number, 1..4096, got 5000"),
        (["--machines", "0"], "machines"),
        (["--sample", "0"], "sample"),
        (["--sample-subscriptions", "0"], "sample-subscriptions"),
        (["--objects", "missing"], "missing"),
        (["--subscriptions", "."], "directory"),
        (["--subscriptions", "objects.parquet"], "must be an event log"),
        (["--objects", "damaged.parquet"], "damaged.parquet"),
        (["--objects", "other.parquet"], "lacks ts"),
        (["--objects", "wrong.parquet"], "wrong.parquet"),
        (["--out", "log.jsonl"], "log.jsonl"),
        (["--out", "log.jsonl/out"], "log.jsonl/out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_unusable_commands_are_refused(command: Command, more: list[str], part: str) -> None:
    content = write_town(Path("log.jsonl"), 3, 3)
    write_objects(Path("objects.parquet"), content)
    Path("log.gz").write_bytes(gzip.compress(content))
    pq.write_table(pa.table({"id": ["a"], "lon": [1.0]}), "other.parquet")
    columns = {"id": ["a"], "ts": ["x"], "lon": ["x"], "lat": ["x"], "text": ["x"]}
    pq.write_table(pa.table(columns), "wrong.parquet")
    Path("damaged.parquet").write_bytes(Path("objects.parquet").read_bytes()[:-20])
    usual = ["--objects", "log.jsonl", "--subscriptions", "log.jsonl", "--workers", "2"]
    assert part in command.refused("plan", *usual, *more)
    assert Path("log.jsonl").read_bytes() == content


def test_the_help_of_replay_names_every_plan(command: Command) -> None:
    command.patch.setenv("COLUMNS", "200")
    assert command.run("replay", "--help") == 0
    words = command.out.replace(",", " ").replace(";", " ").split()
    assert [name for names in PLANS.values() for name in names if name not in words] == []


def test_the_page_of_plans_has_every_plan() -> None:
    text = PAGE.read_text()
    assert [name for names in PLANS.values() for name in names if f"| `{name}` |" not in text] == []


# --- what is read ---


def write_objects(path: Path, log: bytes) -> None:
    """The objects of a log as Parquet."""
    found = [event for event in map(json.loads, log.splitlines()) if event["type"] == "object"]
    columns = {name: [event[name] for event in found] for name in ("id", "lon", "lat", "text")}
    at = pa.array([0] * len(found), pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({**columns, "ts": at}), path, row_group_size=70)


def test_parquet_and_separate_files_give_the_same(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    content = write_town(log)
    write_objects(tmp_path / "objects.parquet", content)
    lines = content.splitlines(keepends=True)
    (tmp_path / "subs.jsonl").write_bytes(b"".join(lines[:80]))
    whole = survey_of(log)
    for objects in (tmp_path / "objects.parquet", log):
        other = survey_of(objects, tmp_path / "subs.jsonl")
        assert len(other.files) == 2
        assert np.array_equal(other.objects.codes, whole.objects.codes)
        assert sorted(other.objects.terms.tolist()) == sorted(whole.objects.terms.tolist())
        assert ids_of(other) == ids_of(whole)
        assert np.array_equal(other.rows.box, whole.rows.box)
    with pytest.raises(Unusable, match="event log"):
        survey_of(log, tmp_path / "objects.parquet")


CHANGES = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([*WORDS, None])), max_size=30)


@settings(max_examples=examples(40))
@given(changes=CHANGES, block=st.sampled_from([1, 300, 1 << 20]))
def test_the_last_word_of_an_id_counts(changes: list[tuple[str, str | None]], block: int) -> None:
    live: dict[str, str] = {}
    lines = []
    for id, word in changes:
        live.pop(id, None)
        if word is None:
            lines.append(unsubscribe(id))
        else:
            live[id] = word
            lines.append(subscribe(id, word))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("placewire.ingest.log.BLOCK_BYTES", block)
        log = Path(folder) / "log.jsonl"
        log.write_bytes(b"".join(lines))
        survey = survey_of(log)
        asked = survey_of_words(Path(folder), [live[id] for id in ids_of(survey)])
    assert ids_of(survey) == list(live)
    assert survey.subscriptions_seen == len(live)
    assert survey.rows.literal_term.tolist() == asked


def survey_of_words(folder: Path, words: list[str]) -> list[int]:
    """The terms of subscriptions that ask for these words, one each."""
    log = folder / "words.jsonl"
    log.write_bytes(b"".join(subscribe(f"w{n}", word) for n, word in enumerate(words)))
    terms: list[int] = survey_of(log).rows.literal_term.tolist()
    return terms


def test_an_even_choice_of_subscriptions(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(subscribe(f"{n}") for n in range(100)))
    chosen = [int(id) for id in ids_of(survey_of(log, sample_subscriptions=40))]
    assert len(chosen) == 40
    steps = np.diff([*chosen, 100])
    assert steps.min() >= 2
    assert steps.max() <= 3


def test_only_boolean_subscriptions_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    near = {"kind": "nearest", "lon": 1, "lat": 2, "keywords": ["coffee"], "k": 3}
    nearest = [dump({"type": "subscribe", "id": id, "ts": TS, **near}) for id in "bc"]
    log.write_bytes(b"".join([subscribe("a"), subscribe("b"), *nearest, subscribe("d")]))
    survey = survey_of(log)
    assert ids_of(survey) == ["a", "d"]
    assert survey.subscriptions_seen == 2


# --- pictures and files ---


@pytest.mark.slow  # only `make test-rest` installs matplotlib
def test_pictures_and_plans_are_written_and_written_again(command: Command) -> None:
    need_peers("matplotlib")
    write_town(Path("log.jsonl"))
    out = Path("new/out")
    command.plan("--plan", "kdt", "--out", out)
    old = (out / "kdt.plan").read_bytes()
    command.plan("--out", out)
    assert f"new/out: plans {len(METHODS)}, pictures {len(METHODS)}\n" in command.out
    assert (out / "kdt.plan").read_bytes() != old, "a key is used by one run only"
    assert {path.name for path in out.iterdir()} == {
        f"{name}.{kind}" for name in METHODS for kind in ("plan", "png")
    }
    keys = set()
    for name in METHODS:
        saved = read_plan(out / f"{name}.plan")
        check_leaves(saved.leaves)
        assert (saved.leaves.name, saved.leaves.workers) == (name, 3)
        assert saved.cost == CALIBRATION.load.in_stream(300, 80)
        keys.add(saved.key)
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(keys) == 1


def test_without_matplotlib_the_plans_are_still_written(command: Command) -> None:
    write_town(Path("log.jsonl"))
    command.patch.setitem(sys.modules, "matplotlib", None)
    command.plan("--plan", "kdt", "--out", "out")
    assert [path.name for path in Path("out").iterdir()] == ["kdt.plan"]
    assert command.err.count("\n") == 1
    assert "pip install 'placewire[draw]'" in command.err


def checkered(side: int, workers: int) -> Leaves:
    """side x side equal leaves over the workers in turn; the last is split by text."""
    step = SIDE // side
    boxes = [
        (x * step, y * step, (x + 1) * step, (y + 1) * step)
        for y in range(side)
        for x in range(side)
    ]
    splits = [NO_SPLIT] * (len(boxes) - 1) + [TextSplit(3, NO_SPLIT.terms, NO_SPLIT.part)]
    owners = [at % workers for at in range(len(boxes) - 1)] + [0, 1, 2]
    return make_leaves("checkered", workers, BY_CELL, boxes, splits, owners)


@pytest.mark.parametrize("side", [1, 4, 64])
@pytest.mark.parametrize("workers", [3, 40])
def test_a_leaf_has_the_colour_of_its_worker(side: int, workers: int) -> None:
    colours = worker_colours(workers)
    pixels = paint_leaves(checkered(side, workers), MapView(-180, -90, 180, 90), colours, 1280, 640)
    wide, high = 1280 // side, 640 // side
    for at in range(side * side - 1):
        x, y = at % side, side - 1 - at // side  # rows count from the south
        middle = pixels[y * high + high // 2, x * wide + wide // 2]
        assert np.array_equal(middle, colours[at % workers])
    if side < 64:  # room for all three stripes
        split = pixels[:high, -wide:].reshape(-1, 3)
        for worker in range(3):
            light = 0.7 * colours[worker] + 0.3
            assert np.isclose(split, light).all(axis=1).mean() > 0.15


def test_colours_are_colours_and_differ() -> None:
    for workers in (1, 10, 4096):
        colours = worker_colours(workers)
        assert colours.shape == (workers, 3)
        assert colours.min() >= 0
        assert colours.max() <= 1
    assert len({tuple(colour) for colour in np.round(worker_colours(48), 3).tolist()}) == 48


def test_the_view_is_where_the_objects_are() -> None:
    random = np.random.default_rng(3)
    lons, lats = random.normal(10, 2, 2_000), random.normal(48, 1, 2_000)
    view = find_view(lons, lats)
    assert view.west < lons.min() < lons.max() < view.east
    assert view.east - view.west < 2 * (lons.max() - lons.min())
    # A few far away do not make it the world, and are not counted as shown.
    strays = np.array([-170.0, 170.0]), np.array([-80.0, 80.0])
    wide = find_view(*(np.concatenate(both) for both in zip((lons, lats), strays, strict=True)))
    assert wide.east - wide.west < 40
    _, counts = gather_dots(wide, *strays, 800, 400)
    assert counts.sum() == 0
    _, counts = gather_dots(view, lons, lats, 800, 400)
    assert counts.sum() == 2_000
    assert find_view(lons[:0], lats[:0]) == MapView(-180, -90, 180, 90)


@pytest.mark.parametrize("place", [(0, 0), (180, 90), (-180, -90), (179.99, -45)])
def test_one_place_is_a_view_too(place: tuple[float, float]) -> None:
    codes = points_to_codes(np.full(5, place[0], float), np.full(5, place[1], float))
    lons, lats = scatter_objects(codes)
    view = find_view(lons, lats)
    assert np.array_equal(points_to_codes(lons, lats), codes)
    assert -180 <= view.west < view.east <= 180
    assert -90 <= view.south < view.north <= 90
    assert math.isfinite(view.shape)
    assert view.west <= lons.min()
    assert lons.max() <= view.east


# --- replaying a saved plan ---


@pytest.fixture
def undrawn(command: Command) -> Command:
    """The same without pictures."""
    command.patch.setitem(sys.modules, "matplotlib", None)
    return command


def replay(command: Command, *more: object) -> bytes:
    options = ("--results", "results.jsonl", "--runner", "local", "--batch-rows", 150)
    assert command.run("replay", "log.jsonl", *options, *more) == 0, command.err
    return Path("results.jsonl").read_bytes()


def test_a_saved_plan_is_used_from_the_first_batch_on(undrawn: Command) -> None:
    write_town(Path("log.jsonl"))
    expected = replay(undrawn)
    assert expected.count(b"\n") > 30
    undrawn.plan("--plan", "auto", "--out", "out")
    for name in ("grid", "frequency", "kdt", "agrid"):  # a manner of routing each
        plan = ("--workers", 3, "--plan", f"out/{name}.plan")
        state = Path(f"state-{name}")
        assert replay(undrawn, *plan, "--state", state) == expected
        first = read_manifest(StateDir(state), 0)
        assert (first.leaf_plan.version, first.leaf_plan.method) == (1, name)
        saved = read_plan(Path(f"out/{name}.plan"))
        assert first.key == saved.key
        arrays._open.clear()
        used = read_plan(StateDir(state).file(first.leaf_plan.file))
        assert np.array_equal(used.leaves.box, saved.leaves.box)
        assert used.cost == saved.cost
        assert first.leaf_plan.cost == saved.cost._asdict()


def test_a_saved_plan_without_its_cost_is_used_too(undrawn: Command) -> None:
    """Plans that were saved before costs were kept with them."""
    write_town(Path("log.jsonl"))
    expected = replay(undrawn)
    undrawn.plan("--plan", "kdt", "--out", "out")
    saved = read_plan(Path("out/kdt.plan"))
    write_plan(Path("older.plan"), saved.leaves, saved.key)
    assert read_plan(Path("older.plan")).cost is None
    assert replay(undrawn, "--workers", 3, "--plan", "older.plan", "--state", "state") == expected
    latest = read_latest(StateDir(Path("state")))
    assert latest is not None
    assert latest.leaf_plan.cost is None
    for wrong in (saved.cost._replace(per_object=-1.0), saved.cost._replace(inserts="many")):
        Path("wrong.plan").unlink(missing_ok=True)
        write_plan(Path("wrong.plan"), saved.leaves, saved.key, wrong)
        with pytest.raises(Unusable, match=r"wrong.plan: is not a plan: its cost .* got"):
            read_plan(Path("wrong.plan"))


def test_the_costs_of_a_plan_survive_resuming(undrawn: Command) -> None:
    content = write_town(Path("log.jsonl"))
    lines = content.splitlines(keepends=True)
    for name in ("kdt", "auto"):
        state = Path(f"state-{name}")
        costs = []
        for at in (150, 300):
            Path("log.jsonl").write_bytes(b"".join(lines[:at]))
            plan_early(state, name)
            latest = read_latest(StateDir(state))
            assert latest is not None
            assert latest.leaf_plan.version == 1
            costs.append(latest.leaf_plan.cost)
            # Another machine by the look of it: what the plan was made by stays.
            undrawn.patch.setattr("placewire.plans.boolean.planner.calibrate", lambda: None)
        assert costs[0] == costs[1]
        assert costs[0]["per_posting"] == CALIBRATION.load.per_posting
        undrawn.patch.setattr("placewire.plans.boolean.planner.calibrate", lambda: CALIBRATION)


@pytest.mark.parametrize("plan", ["kdt", "auto", "out/kdt.plan", "shared", "scan"])
def test_the_sample_goes_on_after_the_plan(undrawn: Command, plan: str) -> None:
    """Under a plan each block leaves a few of its objects; a resumed run begins anew."""
    undrawn.patch.setattr("placewire.batch.coordinator.SAMPLE_A_BLOCK", 4)
    lines = write_town(Path("log.jsonl")).splitlines(keepends=True)
    undrawn.plan("--plan", "kdt", "--out", "out")
    Path("log.jsonl").write_bytes(b"".join(lines[:250]))
    seen = [plan_early(Path("state"), plan)]
    Path("log.jsonl").write_bytes(b"".join(lines))
    seen.append(plan_early(Path("state"), plan))
    if plan in ("shared", "scan"):
        assert seen == [0, 0]
        return
    a_run = 4 * 3 * 3  # objects of a block, blocks of a batch, batches
    # Before the plan 100 events were seen, 20 of them objects; a plan from a file is there at once.
    first = seen[0] - a_run
    assert first == 20 if plan != "out/kdt.plan" else 4 <= first <= 12
    assert seen[1] == a_run


def plan_early(state: Path, plan: str) -> int:
    """Run the log with a plan made of its first hundred events; how many objects were sampled."""
    log = Path("log.jsonl")
    coordinator = Coordinator(
        StateDir(state.absolute()), Settings(), identify_log(log), plan, 3, 100
    )
    try:
        for _ in replay_log(coordinator, LogSource(str(log)), 50, 3):
            pass
        return coordinator.planners.sampler.objects.seen
    finally:
        coordinator.close()


def test_a_saved_plan_brings_its_number_of_workers(undrawn: Command) -> None:
    write_town(Path("log.jsonl"))
    expected = replay(undrawn)
    for workers in (3, 7):
        undrawn.plan("--plan", "kdtree", "--out", "out", workers=workers)
        state = Path(f"state-{workers}")
        assert replay(undrawn, "--plan", "out/kdtree.plan", "--state", state) == expected
        first = read_manifest(StateDir(state), 0)
        assert first.leaf_plan.workers == workers
        assert len(first.blocks) == workers
        results = Path("api.jsonl")
        placewire.replay("log.jsonl", results, plan="out/kdtree.plan", batch_rows=150)
        assert results.read_bytes() == expected
    line = undrawn.refused(
        "replay", "log.jsonl", "--results", "results.jsonl", "--plan", "out/kdtree.plan",
        "--workers", 3,
    )  # fmt: skip
    assert "out/kdtree.plan: was made for 7 workers, got 3" in line


def test_a_state_goes_on_with_plans_of_its_key(undrawn: Command) -> None:
    content = write_town(Path("log.jsonl"))
    expected = replay(undrawn)
    undrawn.plan("--plan", "auto", "--out", "out")
    lines = content.splitlines(keepends=True)
    for at, plan in (
        (150, "out/kdt.plan"),
        (250, "out/qt.plan"),
        (320, "grid"),
        (380, "out/kdt.plan"),
    ):
        Path("log.jsonl").write_bytes(b"".join(lines[:at]))
        results = replay(undrawn, "--workers", 3, "--plan", plan, "--state", "state")
        latest = read_latest(StateDir(Path("state")))
        assert latest is not None
        assert latest.leaf_plan.name == plan
    assert results == expected


def test_a_plan_that_does_not_fit_is_refused(undrawn: Command) -> None:
    write_town(Path("log.jsonl"))
    undrawn.plan("--plan", "kdt", "--out", "out")
    undrawn.plan("--plan", "kdt", "--out", "other")
    usual = ("replay", "log.jsonl", "--results", "results.jsonl", "--runner", "local")
    line = undrawn.refused(*usual, "--workers", 4, "--plan", "out/kdt.plan")
    assert "out/kdt.plan: was made for 3 workers, got 4" in line
    expected = replay(undrawn, "--workers", 3, "--plan", "out/kdt.plan", "--state", "state")
    arguments = (*usual, "--workers", 3, "--state", "state", "--plan")
    line = undrawn.refused(*arguments, "other/kdt.plan")
    assert "another key" in line
    assert "state" in line
    undrawn.refused(*arguments, "log.jsonl")
    whole = Path("out/kdt.plan").read_bytes()
    for content in (b"", whole[:50], whole[:300], whole[:20] + b"x" * len(whole)):
        Path("damaged.plan").write_bytes(content)
        assert "damaged.plan" in undrawn.refused(*arguments, "damaged.plan")
    some = next(Path("state/files").glob("*-live-*"))  # an array file, and no plan
    assert "is not a plan" in undrawn.refused(*arguments, some)
    leaves = read_plan(Path("out/kdt.plan")).leaves
    write_plan(Path("holes.plan"), leaves._replace(box=leaves.box[:, [0, 1, 0, 1]]), KEY)
    assert "is not a plan" in undrawn.refused(*arguments, "holes.plan")
    assert replay(undrawn, "--workers", 3, "--plan", "out/kdt.plan", "--state", "state") == expected


def test_a_name_is_a_name_even_if_a_file_has_it(command: Command) -> None:
    write_town(Path("log.jsonl"))
    Path("kdt").write_bytes(b"something else")
    replay(command, "--plan", "kdt", "--workers", 2)
    assert "kdt: is not" in command.refused(
        "replay", "log.jsonl", "--results", "results.jsonl", "--runner", "local", "--plan", "./kdt"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kdt", PlanNames("kdt", "shared")),
        ("dkm", PlanNames("shared", "dkm")),
        ("auto", PlanNames("auto", "auto", "auto")),
        ("scan", PlanNames("scan", "scan", "scan")),
        ("nearest=dkm,boolean=kdt", PlanNames("kdt", "dkm")),
        (" nearest = sstd , boolean=scan", PlanNames("scan", "sstd")),
        ("nearest=kop", PlanNames("shared", "kop")),
        ("location+prefix", PlanNames(relevant="location+prefix")),
        ("relevant=hash,nearest=kop", PlanNames("shared", "kop", "hash")),
    ],
)
def test_a_plan_for_each_kind(text: str, expected: PlanNames) -> None:
    assert parse_plans(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("boolean=dkm", r"plan of boolean subscriptions: must be one of shared, .*, text or "),
        ("nearest=kdt", r"plan of nearest subscriptions: must be one of .*, sstd, got 'kdt'"),
        ("nearest=", "got ''"),
        ("foo=dkm", "a kind must be one of boolean, nearest, relevant, got 'foo'"),
        ("=", "a kind must be one of boolean, nearest, relevant, got ''"),
        ("nearest=dkm,nearest=kop", "nearest must have one plan, got 'dkm' and 'kop'"),
        ("nearest=dkm,kdt", "each part must be KIND=NAME, got 'kdt'"),
        ("", r"must be one of .*, prefix\+location or a file, got ''"),
        ("nothing", r"must be one of .*, prefix\+location or a file, got 'nothing'"),
        ("no/such.plan", "is no file that can be read"),
    ],
)
def test_plans_that_are_not_there(text: str, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        parse_plans(text)
