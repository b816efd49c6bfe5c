"""The demo and what it is made of: samples, figures, the generated log, warm kernels."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from placewire.city import (
    CityLife,
    count_events,
    readable_queries,
    readable_subscriptions,
    write_log,
)
from placewire.cli.dashboard import Dashboard, plain_sample, said
from placewire.cli.demo import WINDOW, demo_settings
from placewire.cli.figures import Figures
from placewire.cli.main import main
from placewire.cli.outcome import Outcome
from placewire.cli.samples import Listener, LogLines, Sample
from placewire.cli.standing import Standing, Update
from placewire.cli.summary import MOST_HEARD, next_commands, print_summary, rounded
from placewire.cli.words import answered, asked, changed, counted, far, lasting, measured, quoted
from placewire.engine.coordinator import Coordinator
from placewire.engine.local import replay_log
from placewire.engine.log import identify_log
from placewire.engine.reading import LogSource
from placewire.engine.sink import FileSink
from placewire.model.times import parse_timestamp
from placewire.state.layout import StateDir

LIFE = CityLife(objects=6_000, subscriptions=800, churn=0.1, bad=6)
IDS = [event["id"] for event in readable_subscriptions()]
QUERIES = [query.event for query in readable_queries()]


class Played(NamedTuple):
    log: Path
    results: list[dict[str, Any]]
    listener: Listener
    figures: Figures
    samples: list[Sample]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A small hour, played in this process as the demo plays it on Spark."""
    folder = tmp_path_factory.mktemp("demo")
    log = folder / "hour.jsonl"
    write_log(LIFE, log)
    state = StateDir(folder / "state")
    coordinator = Coordinator(state, demo_settings(), identify_log(log), workers=2)
    listener = Listener(state, LogLines(log), readable_subscriptions(), QUERIES)
    figures = Figures(state, count_events(LIFE), 0.0)
    sink = FileSink(state, with_data=False)
    samples = []
    for second, manifest in enumerate(replay_log(coordinator, LogSource(str(log)), 500, 2), 1):
        sink.deliver(manifest)
        figures.commit(manifest, float(second))
        samples += listener.hear(manifest)
        figures.begin_batch(float(second))
        coordinator.delivered = manifest.batch
    coordinator.close()
    results = [json.loads(line) for line in sink.results.read_bytes().splitlines()]
    return Played(log, results, listener, figures, samples)


def texts_by_id(log: Path) -> dict[str, str]:
    """The texts of all objects."""
    objects = (
        json.loads(line)
        for line in log.read_bytes().splitlines()
        if line.startswith(b'{"type":"object"') and b"bad-" not in line
    )
    return {event["id"]: event["text"] for event in objects}


def test_listener_counts_every_result_of_its_subscriptions(played: Played) -> None:
    expected = Counter(r.get("subscription") for r in played.results)
    heard = dict(zip(IDS, played.listener.counts.tolist(), strict=True))
    assert sum(heard.values()) > 50
    assert heard == {name: expected[name] for name in IDS}


def test_samples_are_results_in_words(played: Played) -> None:
    named = texts_by_id(played.log)
    texts = {
        (r["subscription"], named[name])
        for r in played.results
        for name in [
            r.get("object"),
            *(one["object"] for one in r.get("add", []) + r.get("drop", [])),
        ]
        if name is not None and "subscription" in r
    }
    objects = [sample for sample in played.samples if sample.place is not None]
    assert len(objects) > 20
    assert {(s.name, s.text) for s in objects} <= texts
    assert len({s.name for s in played.samples}) > 10


def test_reports_and_answers_are_told_in_words(played: Played) -> None:
    reports = [r for r in played.results if r.get("subscription") in played.listener.reports]
    assert len(reports) >= 8
    expected = [(r["subscription"], r["at"][11:19], counted(r["terms"])) for r in reports]
    kept = [one for several in played.listener.reports.values() for one in several]
    assert sorted((s.name, s.time, s.text) for s in kept) == sorted(expected)
    assert any(sample in played.samples for sample in kept)
    texts = texts_by_id(played.log)
    answers = {r["query"]: r for r in played.results if r["type"] == "answer"}
    assert [sample.name for sample in played.listener.answers] == [q["id"] for q in QUERIES]
    for query, sample in zip(QUERIES, played.listener.answers, strict=True):
        assert sample.text == answered(query, answers[query["id"]], texts.__getitem__)
        assert sample in played.samples


def test_figures_count_what_is_live(played: Played) -> None:
    live: dict[str, int] = {}
    now = 0
    for line in played.log.read_bytes().splitlines():
        try:
            event = json.loads(line)
            ts = parse_timestamp(event["ts"])
        except Exception:
            continue
        if event["id"].startswith("bad-"):
            continue
        now = max(now, ts)
        if event["type"] == "subscribe":
            live[event["id"]] = parse_timestamp(event.get("expires", "9999-01-01T00:00:00Z"))
        elif event["type"] == "unsubscribe":
            live.pop(event["id"], None)
    assert played.figures.live == sum(expires > now for expires in live.values())


def test_figures_of_the_matching_phase(played: Played) -> None:
    figures = played.figures
    assert figures.counters.objects == LIFE.objects
    assert figures.matching_s() == len(figures.latencies_s)
    assert figures.mean("objects") == pytest.approx(LIFE.objects / figures.matching_s())
    assert figures.latency_s(50) == 1.0


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_wider_than_the_terminal(played: Played, width: int) -> None:
    console = Console(
        file=io.StringIO(), force_terminal=True, width=width, height=24, color_system=None
    )
    dashboard = Dashboard(console, played.figures, readable_subscriptions(), WINDOW)
    console.print(dashboard.view())
    best = played.listener.members("jazz-by-the-river")
    dashboard.update(played.samples, best)
    with console.capture() as capture:
        console.print(dashboard.view())
    view = capture.get()
    console.print(view)
    assert view.count("\n") < console.height
    assert "jazz-by-the-river: the most relevant of the last 20 minutes" in view
    assert sum(f"  {sample.lead}  " in view for sample in best) == len(best) > 0
    letter = {"seq": 7, "error": "lon must be in [-180, 180], got 412.5", "event": "x" * 500}
    print_summary(console, played.figures, played.listener, letter, 60.0, WINDOW)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    commands = set(next_commands())
    rows = [row for row in shown.splitlines() if row.strip() not in commands]
    assert max(Console().measure(row).maximum for row in rows) <= width
    assert f"{LIFE.objects:,}" in shown
    booleans = [e["id"] for e in readable_subscriptions() if e["kind"] == "boolean"]
    counts = dict(zip(IDS, played.listener.counts.tolist(), strict=True))
    for name in booleans[:MOST_HEARD]:
        assert any(name in row and f" {counts[name]:,} " in row for row in rows)
    for name in (*played.listener.standing, *played.listener.reports, *played.listener.queries):
        assert any(row.startswith(f"{name} ") for row in rows)
    summary = shown.split("what came of it")[1]
    assert 30 < summary.count("\n") < 48


def test_standing_results_are_those_of_the_updates(played: Played) -> None:
    lines = played.log.read_bytes().split(b"\n")
    standing = [e for e in readable_subscriptions() if e["kind"] in ("nearest", "relevant")]
    assert {event["id"] for event in standing} == set(played.listener.standing)
    for event in standing:
        named: dict[str, float] = {}
        for result in played.results:
            if result.get("subscription") == event["id"]:
                for dropped in result["drop"]:
                    del named[dropped["object"]]
                for added in result["add"]:
                    named[added["object"]] = added.get("distance_m", added.get("score"))
        scored = event["kind"] == "relevant"
        members = played.listener.standing[event["id"]].members
        assert 0 < len(members) <= event["k"]
        assert {member.object: member.measure for member in members} == named
        assert [member.measure for member in members] == sorted(named.values(), reverse=scored)
        objects = [json.loads(lines[member.seq]) for member in members]
        assert [found["id"] for found in objects] == [member.object for member in members]
        told = [(sample.text, sample.lead) for sample in played.listener.members(event["id"])]
        expected = [measured(member.measure, scored) for member in members]
        assert told == list(zip((o["text"] for o in objects), expected, strict=True))


def test_results_may_change_by_several_at_once() -> None:
    seqs = {f"o{number}": number for number in range(10)}

    def seq_of(name: str, until: int) -> int:
        assert seqs[name] <= until
        return seqs[name]

    best = Standing(scored=True)
    change = best.apply(Update(5, [("o2", 0.9), ("o5", 0.5), ("o1", 0.5)], []), seq_of)
    assert [member.object for member in change.added] == ["o2", "o5", "o1"]
    change = best.apply(Update(7, [("o7", 0.5), ("o4", 0.1)], ["o2", "o1"]), seq_of)
    assert [member.measure for member in change.dropped] == [0.9, 0.5]
    assert [member.object for member in best.members] == ["o7", "o5", "o4"]
    change = best.apply(Update(8, [], ["o7"]), seq_of)
    assert (change.added, [member.object for member in change.dropped]) == ([], ["o7"])
    nearest = Standing(scored=False)
    nearest.apply(Update(3, [("o3", 20.0)], []), seq_of)
    nearest.apply(Update(4, [("o4", 20.0)], []), seq_of)
    nearest.apply(Update(6, [("o6", 5.0)], ["o4"]), seq_of)
    assert [member.object for member in nearest.members] == ["o6", "o3"]


@pytest.mark.parametrize(
    ("added", "dropped", "scored", "words"),
    [
        ([812.4], [], False, "812 m"),
        ([812.4], [4_249.0], False, "812 m pushes out 4.2 km"),
        ([0.7144], [], True, "score 0.714"),
        ([0.7144], [0.52], True, "score 0.714 pushes out 0.520"),
        ([0.52], [0.7144], True, "score 0.520 moves up, 0.714 is too old"),
        ([], [0.7144], True, "score 0.714 is too old"),
        ([0.9, 0.8, 0.7], [], True, "score 0.900 and 2 more"),
        (
            [0.3, 0.2],
            [0.9, 0.8],
            True,
            "score 0.300 and 1 more move up, 0.900 and 1 more are too old",
        ),
        ([], [0.9, 0.8], True, "score 0.900 and 1 more are too old"),
        ([0.9, 0.8], [0.1], True, "score 0.900 and 1 more push out 0.100"),
    ],
)
def test_changes_of_results_in_words(
    added: list[float], dropped: list[float], scored: bool, words: str
) -> None:
    assert changed(added, dropped, scored) == words


def test_updates_are_told_with_what_they_change(played: Played) -> None:
    told = [*played.samples, *played.listener.last.values()]
    updates = [sample for sample in told if sample.lead]
    for name in played.listener.standing:
        assert any(sample.name == name for sample in updates)
    pushing = [sample for sample in updates if sample.dropped is not None]
    assert len(updates) > len(pushing) > 0
    for sample in pushing:
        assert sample.dropped is not None
        assert " pushes out " in sample.lead or " is too old" in sample.lead
        assert str(said(sample)) == f"{sample.lead}: {quoted(sample.text)}"
        assert plain_sample(sample).endswith(f"out: {quoted(sample.dropped)}")


def test_without_a_terminal_lines_tell_what_is_best_now(played: Played) -> None:
    console = Console(file=io.StringIO(), force_terminal=False, width=80)
    dashboard = Dashboard(console, played.figures, readable_subscriptions(), WINDOW)
    best = played.listener.members("jazz-by-the-river")
    dashboard.last_line_s = -1e9
    dashboard.update(played.samples[-3:], best)
    dashboard.update(played.samples[-3:], best)  # too soon for another line
    figures, sample, now = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert "100%" in figures
    assert sample.strip() in map(plain_sample, played.samples)
    first = f"{best[0].time}  jazz-by-the-river  {best[0].lead}: {quoted(best[0].text)}"
    assert now == f"  most relevant now: {first}"


def test_results_are_counted_by_type(played: Played) -> None:
    types = Counter(result["type"] for result in played.results)
    figures = played.figures
    assert figures.matches == types["match"] > 0
    assert figures.updates == types["update"] > 0
    assert figures.reports == types["report"] > 0
    assert figures.answers == types["answer"] == LIFE.queries
    assert figures.counters.results == sum(types.values())


@pytest.mark.parametrize(
    ("distance_m", "words"),
    [
        (0.0, "0 m"),
        (812.4, "812 m"),
        (999.4, "999 m"),
        (999.6, "1 km"),
        (4_249.0, "4.2 km"),
        (9_951.0, "10 km"),
        (10_232_372.1, "10,232 km"),
    ],
)
def test_distances_are_as_exact_as_anybody_cares(distance_m: float, words: str) -> None:
    assert far(distance_m) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [(0, "0"), (9_999, "9,999"), (57_762, "58k"), (999_499, "999k"), (999_500, "1.0M")],
)
def test_large_amounts_are_rounded_where_there_is_little_room(amount: int, words: str) -> None:
    assert rounded(amount) == words


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        ("PT10M", "10 minutes"),
        ("PT1H", "1 hour"),
        ("PT90M", "90 minutes"),
        ("P1D", "1 day"),
        ("PT1S", "1 second"),
        ("PT0.5S", "less than a second"),
    ],
)
def test_durations_in_words(duration: str, words: str) -> None:
    assert lasting(duration) == words


def test_answers_in_words() -> None:
    texts = {"o1": "tea  now"}
    found = {"total": 1_200, "objects": [{"object": "o1", "distance_m": 812.4, "score": 0.714}]}

    def words(kind: str, answer: dict[str, Any]) -> str:
        return answered({"kind": kind, "last": "PT1H"}, answer, texts.__getitem__)

    assert words("boolean", found) == '1,200 in 1 hour, the last: "tea now"'
    assert words("nearest", found) == '812 m: "tea now"'
    assert words("relevant", found) == 'score 0.714: "tea now"'
    assert words("nearest", {"objects": []}) == "nothing"
    assert words("trending", {"terms": [["tea", 1_200], ["now", 7]]}) == "tea 1,200, now 7"
    assert words("trending", {"terms": []}) == "no words"


def test_subscriptions_in_words() -> None:
    talk = {"kind": "trending", "k": 8, "window": "PT20M", "every": "PT10M"}
    circle = {"circle": {"lon": 28.985, "lat": 41.037, "radius_m": 1500}}
    words = "the 8 most frequent words within 1.5 km of (28.985, 41.037), every 10 minutes"
    assert asked({**talk, "region": circle}) == words
    words = "the 8 most frequent words from (3.374, 6.442) to (3.403, 6.470), every 10 minutes"
    assert asked({**talk, "region": {"box": [3.374, 6.442, 3.403, 6.47]}}) == words
    words = "the 8 most frequent words about (1.000, 2.000), every 10 minutes"
    assert asked({**talk, "region": {"polygon": [[[1, 2], [3, 2], [3, 4], [1, 2]]]}}) == words
    assert asked(talk) == "the 8 most frequent words of the world, every 10 minutes"
    near = {"kind": "nearest", "lon": -73.9903, "lat": 40.7359, "k": 3}
    words = "the 3 nearest to (-73.990, 40.736), within 2 km: free AND coffee"
    assert asked({**near, "keywords": ["free", "coffee"], "mode": "all", "within_m": 2e3}) == words
    words = "the nearest to (-73.990, 40.736): tea OR chai"
    assert asked({**near, "keywords": ["tea", "chai"], "k": 1}) == words
    best = {**near, "kind": "relevant", "keywords": ["tea", "chai"], "alpha": 0.5}
    words = "the 3 most relevant near (-73.990, 40.736), reach 5 km: tea, chai"
    assert asked({**best, "reach_m": 5e3}) == words
    assert asked({**best, "k": 1}) == "the most relevant near (-73.990, 40.736): tea, chai"
    assert asked({"kind": "boolean", "where": "tea NOT chai"}) == "tea NOT chai"
    assert asked({"kind": "boolean", "where": {"any": ["çay"]}}) == '{"any": ["çay"]}'


def test_quoted_texts_are_one_clean_line() -> None:
    assert quoted("rain\n\x1b[31m ☀\ufe0f  now\u202e") == '"rain [31m ☀ now"'


def test_generate_then_replay_in_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    life = LIFE._replace(start="2026-05-01T08:00:00Z", seconds=600)
    words = ["--objects", "6000", "--subscriptions", "800", "--churn", "0.1", "--bad", "6"]
    words += ["--start", life.start, "--seconds", "600", "--queries", "40"]
    assert run(monkeypatch, "generate", "hour.jsonl", *words) == 0
    said = capsys.readouterr().out
    size = Path("hour.jsonl").stat().st_size
    assert said.startswith(f"events {count_events(life)}, bytes {size}, ")
    write_log(life, "same.jsonl")
    assert Path("same.jsonl").read_bytes() == Path("hour.jsonl").read_bytes()
    code = run(
        monkeypatch, "replay", "hour.jsonl", "--results", "results.jsonl", "--runner", "local"
    )
    assert code == 0
    assert f"events {count_events(life)}, " in capsys.readouterr().out
    assert Path("results.jsonl").stat().st_size > 0


def test_generate_defaults_are_those_of_the_city(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[CityLife] = []
    monkeypatch.setattr(
        "placewire.cli.generate.run_generate",
        lambda life, log: given.append(life) or Outcome("", {}),
    )
    run(monkeypatch, "generate", str(tmp_path / "log.jsonl"))
    assert given == [CityLife()]


@pytest.mark.parametrize(
    "words",
    [
        ["generate"],
        ["generate", "missing/log.jsonl"],
        ["generate", "."],
        ["generate", "old.jsonl", "--start", "noon"],
        ["generate", "old.jsonl", "--seconds", "0"],
        ["generate", "old.jsonl", "--churn", "2"],
        ["generate", "old.jsonl", "--objects", "-1"],
        ["generate", "old.jsonl", "--objects", "many"],
        ["generate", "old.jsonl", "--queries", "-1"],
        ["demo", "--workers", "0"],
        ["demo", "--objects", "0"],
        ["demo", "--colour"],
        ["dance"],
    ],
    ids=" ".join,
)
def test_unusable_words_give_one_line_and_exit_2(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.jsonl").write_bytes(b"precious\n")
    assert run(monkeypatch, *words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("placewire: ")
    assert said.err.count("\n") == 1
    assert Path("old.jsonl").read_bytes() == b"precious\n"


def test_no_words_show_what_there_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch) == 0
    assert "generate" in capsys.readouterr().out


WARMING = """
import importlib, json, pkgutil, sys
from pathlib import Path
import placewire.kernels
from placewire.engine.coordinator import Coordinator
from placewire.engine.local import replay_log
from placewire.engine.log import identify_log
from placewire.engine.reading import LogSource
from placewire.engine.outbox import result_lines
from placewire.engine.warming import warm_kernels
from placewire.model.settings import settings_of
from placewire.state.layout import StateDir

def compiled():
    modules = [
        importlib.import_module(f"placewire.kernels.{module.name}")
        for module in pkgutil.iter_modules(placewire.kernels.__path__)
    ]
    return {
        f"{name}{kind}"
        for module in modules
        for name, kernel in vars(module).items()
        if hasattr(kernel, "signatures")
        for kind in kernel.signatures
    }

log, state = Path(sys.argv[1]), StateDir(Path(sys.argv[2]))
settings = settings_of(json.loads(sys.argv[3]))
warm_kernels("shared", settings)
before = compiled()
coordinator = Coordinator(state, settings, identify_log(log), workers=2)
for manifest in replay_log(coordinator, LogSource(str(log)), 2_000, 2):
    for _ in result_lines(state, manifest, False):
        pass
coordinator.close()
print(*(compiled() - before), sep="\\n", end="")
"""


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"window": {"count": 1_000}},
        {"window": {"time": WINDOW}, "lexicon": "lexicon.json"},
        {"analyzer": "cjk-bigram"},
        {"analyzer": "snowball:english", "stop_words": "english"},
    ],
    ids=["usual", "short", "by time", "pairs", "stems"],
)
def test_warm_kernels_are_all_that_a_run_needs(
    played: Played, settings: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "lexicon.json").write_text('{"documents": 9, "df": {"jazz": 2}}')
    words = [str(played.log), str(tmp_path / "state"), json.dumps(settings)]
    found = subprocess.run(
        [sys.executable, "-c", WARMING, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == ""


def test_demo_on_spark_without_a_terminal(tmp_path: Path) -> None:
    words = ["demo", "--objects", "4000", "--subscriptions", "600", "--workers", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "placewire.cli.main", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for line in done.stderr.splitlines():
        assert line.startswith(("compiling kernels", "writing the log")), done.stderr
    assert "which runs on Java" in done.stdout
    assert "what came of it" in done.stdout
    assert "4,000" in done.stdout
    assert "40 answers" in done.stdout
    assert "what some of them heard" in done.stdout
    assert "what is nearest in the end" in done.stdout
    assert "what is most relevant in the end, of the last 20 minutes" in done.stdout
    assert "\njazz-by-the-river  0." in done.stdout
    assert "what is talked about" in done.stdout
    assert "what was asked, and answered" in done.stdout
    assert "what to try next" in done.stdout
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit code of a command line, in this process."""
    monkeypatch.setattr(sys, "argv", ["placewire", *words])
    with pytest.raises(SystemExit) as leaving:
        main()
    return int(leaving.value.code or 0)
