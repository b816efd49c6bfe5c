"""Snapshots: a state answers on demand what its log would, whatever else happens to it."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import oracle
from placewire.api import open_snapshot, replay
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import Settings

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORDS = ["coffee", "tea", "free", "sale", "café", "naïve", "straße", "東京", "the"]
ASKED: list[dict[str, Any]] = [
    {"kind": "boolean", "where": "coffee AND NOT tea", "last": "PT10M"},
    {"kind": "boolean", "region": {"box": [170, -5, -170, 9]}, "last": "PT2M", "limit": 2},
    {"kind": "boolean", "region": {"circle": {"lon": 0, "lat": 0, "radius_m": 5e5}}, "last": "P1D"},
    {"kind": "nearest", "lon": 0, "lat": 0, "keywords": ["coffee", "東京"], "k": 7, "last": "PT5M"},
    {"kind": "nearest", "lon": 179, "lat": 3, "keywords": ["free", "sale"], "mode": "all", "k": 3,
     "within_m": 2e6, "last": "P1D"},
    {"kind": "relevant", "lon": 1, "lat": 2, "keywords": ["free café", "the"], "k": 5,
     "alpha": 0.3, "reach_m": 1e6, "last": "PT8M"},
    {"kind": "relevant", "lon": 1, "lat": 2, "keywords": ["tea"], "k": 1000, "alpha": 1,
     "last": "P1D"},
    {"kind": "trending", "k": 3, "last": "PT9M"},
    {"kind": "trending", "k": 1000, "last": "P1D",
     "region": {"polygon": [[[-9, -9], [9, -9], [0, 9], [-9, -9]]]}},
]  # fmt: skip


def objects(count: int, seed: int = 3) -> list[dict[str, Any]]:
    choose = random.Random(seed)
    return [
        {
            "type": "object",
            "id": f"o{n}",
            "ts": (START + timedelta(seconds=n)).isoformat(),
            "lon": choose.choice([choose.uniform(-10, 10), choose.uniform(165, 180), -175.0]),
            "lat": choose.uniform(-10, 10),
            "text": " ".join(choose.choices(WORDS, k=choose.randrange(5))),
        }
        for n in range(count)
    ]


def write_log(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    return path


def keep(folder: Path, events: list[dict[str, Any]], rows: int, **options: Any) -> Path:
    """The state of a log."""
    log = write_log(folder / "log.jsonl", events)
    replay(log, folder / "results.jsonl", state=folder / "state", batch_rows=rows, **options)
    return folder / "state"


@pytest.mark.parametrize("with_lexicon", [False, True])
@pytest.mark.parametrize(("rows", "plan"), [(50, "shared"), (400, "shared"), (90, "quadtree")])
def test_answers_are_those_of_the_log(
    tmp_path: Path, rows: int, plan: str, with_lexicon: bool
) -> None:
    events = objects(700)
    ts = events[-1]["ts"]
    queries = [{"type": "query", "id": f"q{n}", "ts": ts, **q} for n, q in enumerate(ASKED)]
    table: dict[str, Any] = {}
    lexicon = {"documents": 1000, "df": {"coffee": 900, "tea": 3, "the": 0, "café": 12}}
    if with_lexicon:
        (tmp_path / "lexicon.json").write_text(json.dumps(lexicon))
        table = {"lexicon": str(tmp_path / "lexicon.json")}
    state = keep(
        tmp_path, events + queries, rows, plan=plan, workers=3, settings=table, slice="PT3M"
    )
    lines = (tmp_path / "log.jsonl").read_bytes()
    expected = oracle.replay(lines, settings={"lexicon": lexicon} if with_lexicon else None).results
    assert len(expected) == len(ASKED)
    results = [json.loads(line) for line in (tmp_path / "results.jsonl").read_bytes().splitlines()]
    assert results == expected
    with open_snapshot(state) as snapshot:
        for query, answer in zip(queries, expected, strict=True):
            told = {key: value for key, value in answer.items() if key != "seq"}
            assert snapshot.answer(query) == told
            assert json.loads(snapshot.answer_line(json.dumps(query))) == told


def test_a_query_needs_neither_id_nor_time_and_a_later_one_moves_the_clock(tmp_path: Path) -> None:
    state = keep(tmp_path, objects(60), 10)
    with open_snapshot(state) as snapshot:
        everywhere = {"kind": "boolean", "region": {"box": [-180, -90, 180, 90]}, "limit": 1}
        answer = snapshot.answer({**everywhere, "last": "PT10S"})
        assert answer == {"type": "answer", "total": 10, "objects": [{"object": "o59"}]}
        later = (START + timedelta(seconds=64)).isoformat()
        assert snapshot.answer({**everywhere, "last": "PT10S", "ts": later})["total"] == 5
        earlier = (START + timedelta(seconds=4)).isoformat()
        assert snapshot.answer({**everywhere, "last": "PT10S", "ts": earlier})["total"] == 10
        with pytest.raises(InvalidEvent, match="max_ahead"):
            snapshot.answer({**everywhere, "last": "PT10S", "ts": "2036-01-01T00:00:00Z"})


def deep(levels: int) -> dict[str, Any]:
    """A query whose expression nests."""
    where: Any = "coffee"
    for _ in range(levels):
        where = {"all": [where]}
    return {"kind": "boolean", "where": where, "last": "P1D"}


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ({"kind": "trending", "k": 3, "last": "P2D"}, ["last", "retention", "P2D"]),
        ({"kind": "trending", "k": 3}, ["last"]),
        ({"kind": "trending", "k": 3.0, "last": "P1D"}, ["k", "int"]),
        ({"kind": "boolean", "last": "P1D"}, ["region", "where", "neither"]),
        (
            {"type": "object", "kind": "trending", "k": 3, "last": "P1D"},
            ["type", "query", "object"],
        ),
        ({"kind": "trending", "k": {1, 2}, "last": "P1D"}, ["k"]),
        (
            {"kind": "trending", "k": 1, "last": "P1D", "region": {"box": [0, 0, float("nan"), 1]}},
            ["region"],
        ),
        ({"kind": "what", "last": "P1D"}, ["kind", "boolean", "what"]),
        ('{"kind":"trending","k":1,"k":2,"last":"P1D"}', ["repeated", "k"]),
        ("[1]", ["JSON object", "list"]),
        ("{", ["JSON object"]),
        (b"\xff", ["JSON object"]),
        (None, ["JSON object", "NoneType"]),
        (deep(5_000), ["query"]),
    ],
)
def test_bad_queries_say_what_is_wrong(tmp_path: Path, query: Any, parts: list[str]) -> None:
    state = keep(tmp_path, objects(3), 10)
    with open_snapshot(state) as snapshot, pytest.raises(InvalidEvent) as caught:
        snapshot.answer(query)
    for part in parts:
        assert part in str(caught.value)


def test_an_empty_state_answers_with_nothing(tmp_path: Path) -> None:
    state = keep(tmp_path, [], 10)
    with open_snapshot(state) as snapshot:
        for query in ASKED:
            answer = snapshot.answer(query)
            assert answer.get("total", 0) == 0
            assert answer.get("objects", []) == answer.get("terms", []) == []


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    for path, why in (
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path, "not a placewire state"),
    ):
        with pytest.raises(Unusable, match=why):
            open_snapshot(path)


def test_a_snapshot_stays_at_its_commit_until_it_is_refreshed(tmp_path: Path) -> None:
    events = objects(400)
    state = keep(tmp_path, events[:100], 10)
    everything = {"kind": "boolean", "region": {"box": [-180, -90, 180, 90]}, "last": "P1D"}
    with open_snapshot(state) as snapshot:
        assert snapshot.answer(everything)["total"] == 100
        keep(tmp_path, events, 10)  # merges, and sweeps the files that the snapshot has mapped
        assert snapshot.answer(everything)["total"] == 100
        snapshot.refresh()
        assert snapshot.answer(everything)["total"] == 400


def test_a_state_is_read_while_it_is_written(tmp_path: Path) -> None:
    """Every answer is that of some commit: totals only grow, and no file is missed."""
    events = objects(1_500)
    state = keep(tmp_path, events[:5], 10)
    writer = threading.Thread(target=keep, args=(tmp_path, events, 10))
    totals = []
    everything = {"kind": "boolean", "region": {"box": [-180, -90, 180, 90]}, "last": "P1D"}
    with open_snapshot(state) as snapshot:
        writer.start()
        while writer.is_alive():
            snapshot.refresh()
            totals.append(snapshot.answer(everything)["total"])
        writer.join()
        snapshot.refresh()
        assert snapshot.answer(everything)["total"] == 1_500
    assert totals == sorted(totals)
    assert all(total in (5, 1_500) or (total - 5) % 10 == 0 for total in totals)


def ask(state: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run `placewire query`."""
    return subprocess.run(
        [sys.executable, "-m", "placewire.cli.main", "query", "--state", str(state), *arguments],
        input=given,
        capture_output=True,
        check=False,
    )


def test_the_command(tmp_path: Path) -> None:
    state = keep(tmp_path, objects(20), 10)
    query = '{"kind":"trending","k":2,"last":"P1D"}'
    with open_snapshot(state) as snapshot:
        expected = snapshot.answer(query)
    done = ask(state, "--timing", query)
    assert done.returncode == 0
    assert json.loads(done.stdout) == expected
    assert b"from 20 objects" in done.stderr
    done = ask(state, "-", given=f"{query}\nnonsense\n{query}\n".encode())
    assert done.returncode == 1
    assert [json.loads(line) for line in done.stdout.splitlines()] == [expected] * 2
    assert b"line 2: a query must be one JSON object" in done.stderr
    done = ask(state, '{"kind":"trending","k":2,"last":"P9D"}')
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    shutil.rmtree(state / "files")
    done = ask(state, query)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"documents":10,"df":{"the":-1}}', "got -1"),
        ('{"documents":-5,"df":{}}', "got -5"),
        ('{"documents":1%s,"df":{}}' % ("0" * 400), "bits"),
        ('{"documents":1}', "df"),
    ],
)
def test_a_lexicon_that_makes_no_sense_is_refused(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "lexicon.json").write_text(text)
    with pytest.raises(Unusable, match=part):
        keep(tmp_path, objects(3), 10, settings={"lexicon": str(tmp_path / "lexicon.json")})


def test_a_state_goes_on_only_with_its_own_lexicon(tmp_path: Path) -> None:
    lexicon = tmp_path / "lexicon.json"
    lexicon.write_text('{"documents":10,"df":{"the":1}}')
    keep(tmp_path, objects(3), 10, settings={"lexicon": str(lexicon)})
    moved = tmp_path / "moved.json"
    shutil.copy(lexicon, moved)
    keep(tmp_path, objects(6), 10, settings={"lexicon": str(moved)})
    asked = {"kind": "relevant", "lon": 0, "lat": 0, "keywords": ["the"], "k": 3, "alpha": 0}
    with open_snapshot(tmp_path / "state") as snapshot:
        before = snapshot.answer({**asked, "last": "P1D"})
    lexicon.write_text('{"documents":10,"df":{"the":2}}')
    with pytest.raises(Unusable, match="other settings: lexicon"):
        keep(tmp_path, objects(9), 10, settings={"lexicon": str(lexicon)})
    lexicon.unlink()
    moved.unlink()
    with open_snapshot(tmp_path / "state") as snapshot:
        assert snapshot.answer({**asked, "last": "P1D"}) == before


def test_settings_made_by_hand_have_a_lexicon_too(tmp_path: Path) -> None:
    (tmp_path / "lexicon.json").write_text('{"documents":10,"df":{"the":1}}')
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    path = str(tmp_path / "lexicon.json")
    states = [
        keep(tmp_path / "one", objects(50), 10, settings=Settings(lexicon=path)),
        keep(tmp_path / "two", objects(50), 10, settings={"lexicon": path}),
    ]
    asked = {"kind": "relevant", "lon": 0, "lat": 0, "keywords": ["the", "tea"], "k": 9, "alpha": 0}
    answers = [open_snapshot(state).answer({**asked, "last": "P1D"}) for state in states]
    assert answers[0] == answers[1]


def test_sparse_objects_make_few_files(tmp_path: Path) -> None:
    """Kept by their number, they outlast many slices of time."""
    events = objects(400)
    for number, event in enumerate(events):
        event["ts"] = (START + timedelta(hours=5 * number)).isoformat()
    state = keep(tmp_path, events, 10)
    with open_snapshot(state) as snapshot:
        assert len(snapshot.sections) < 30
        assert sum(section.retained.total for section in snapshot.sections) == 400
        assert snapshot.answer({"kind": "trending", "k": 1000, "last": "P1D"})["terms"]


def test_a_query_may_be_called_query(tmp_path: Path) -> None:
    state = keep(tmp_path, objects(3), 10)
    asked = {"kind": "trending", "k": 1, "last": "P1D"}
    with open_snapshot(state) as snapshot:
        assert snapshot.answer({"id": "query", **asked})["query"] == "query"
        assert "query" not in snapshot.answer(asked)


def test_words_that_are_not_utf8(tmp_path: Path) -> None:
    state = keep(tmp_path, objects(3), 10)
    bad = b'{"kind":"boolean","where":"\xff","last":"P1D"}\n'
    good = b'{"kind":"trending","k":1,"last":"P1D"}\n'
    done = ask(state, "-", given=bad + good)
    assert (done.returncode, done.stdout.count(b"\n")) == (1, 1)
    assert b"Traceback" not in done.stderr


def test_a_closed_snapshot_says_so(tmp_path: Path) -> None:
    with open_snapshot(keep(tmp_path, objects(3), 10)) as snapshot:
        pass
    with pytest.raises(Unusable, match="closed"):
        snapshot.answer({"kind": "trending", "k": 1, "last": "P1D"})
    snapshot.refresh()
    assert snapshot.answer({"kind": "trending", "k": 1, "last": "P1D"})["terms"]


def test_a_distance_that_rounds_to_nothing_scores_as_nothing(tmp_path: Path) -> None:
    """Of equal scores the newer object is first, though it is a third of a millimetre away."""
    events = objects(2)
    for event, lat in zip(events, (1.0, 1.0 + 3e-9), strict=True):
        event |= {"lon": 2.0, "lat": lat, "text": "coffee"}
    asked = {"kind": "relevant", "lon": 2.0, "lat": 1.0, "keywords": ["coffee"], "k": 1}
    with open_snapshot(keep(tmp_path, events, 1)) as snapshot:
        answer = snapshot.answer({**asked, "alpha": 0.5, "reach_m": 1, "last": "P1D"})
    assert answer["objects"] == [{"object": "o1", "score": 1.0}]
