"""The one law under every analyzer: results are those of the oracle with the reference analyzer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import logs as plain
import placewire
from analyzer_logs import TELLING, sample_log
from local_runs import Run, run_local
from logs import BUILT_KINDS, flowing
from oracle import replay
from placewire.plans.boolean.methods import METHODS
from profiles import examples
from reference_analyzers import ANALYZERS, WORDS, texts

NAMES = [name for name in ANALYZERS if name != "default"]
PLAIN = re.compile("|".join(plain.WORDS))


@st.composite
def tongues(draw: st.DrawFn) -> bytes:
    """Logs of the law tests with each of their few words said in another way."""
    said = st.sampled_from(TELLING * 4 + WORDS)
    names = dict(zip(plain.WORDS, draw(st.tuples(*[said] * len(plain.WORDS))), strict=True))

    def translate(value: Any) -> Any:
        if isinstance(value, str):
            return PLAIN.sub(lambda found: names[found[0]], value)
        if isinstance(value, list):
            return [translate(item) for item in value]
        if isinstance(value, dict):
            return {key: translate(item) for key, item in value.items()}
        return value

    lines = []
    for line in draw(plain.logs | flowing()).splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            lines.append(line)
            continue
        for name in ("text", "where", "keywords"):
            if name in event:
                event[name] = translate(event[name])
        if "text" in event and draw(st.booleans()):
            event["text"] += " " + draw(texts())
        lines.append(json.dumps(event, ensure_ascii=draw(st.booleans())).encode())
    return b"\n".join(lines) + b"\n"


def check(name: str, log: bytes, run: Run, **more: Any) -> None:
    _, reference = ANALYZERS[name]
    expected = replay(
        log, kinds=BUILT_KINDS, with_data=True, settings={"analyzer": reference, **more}
    )
    assert run.results == expected.results
    assert [(d["seq"], d["event"]) for d in run.dead] == [
        (d["seq"], d["event"]) for d in expected.dead
    ]
    assert run.idle_unsubscribes == expected.idle_unsubscribes


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 17, 1_000_000])
@settings(max_examples=examples(6), suppress_health_check=list(HealthCheck))
@given(log=tongues(), life=st.sampled_from([None, 1, 5]))
def test_equals_oracle_however_it_is_cut(
    name: str, workers: int, rows: int, log: bytes, life: int | None
) -> None:
    table, _ = ANALYZERS[name]
    run = run_local(log, plan="shared", workers=workers, rows=rows, table=table, life=life)
    check(name, log, run)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(log=tongues(), plan=st.sampled_from([*METHODS, "nearest=dkm,boolean=kdt", "scan"]))
def test_plans_equal_oracle(name: str, log: bytes, plan: str) -> None:
    table, _ = ANALYZERS[name]
    run = run_local(log, plan=plan, workers=3, rows=13, sample_events=7, table=table)
    check(name, log, run)


@pytest.mark.parametrize("name", NAMES)
def test_a_lexicon_has_terms_as_the_analyzer_gives_them(name: str, tmp_path: Path) -> None:
    table, reference = ANALYZERS[name]
    told = ["running coffees", "東京タワー runs", "kitaplar サカナ", "the coffee 東京都"]
    terms = sorted({term for text in told for term in reference(text)})
    lexicon = {"documents": 50, "df": {term: 2 + 3 * at for at, term in enumerate(terms)}}
    path = tmp_path / "lexicon.json"
    path.write_text(json.dumps(lexicon))
    point = {"ts": "2026-03-01T12:00:00Z", "lon": 0, "lat": 0}
    asked = {"keywords": ["coffees", "東京タワー", "kitap"], "k": 3, "alpha": 0.3, **point}
    events = [{"type": "subscribe", "id": "s", "kind": "relevant", **asked}]
    events += [{"type": "object", "id": f"o{at}", "text": told[at % 4], **point} for at in range(9)]
    events.append({"type": "query", "id": "q", "kind": "relevant", "last": "PT1H", **asked})
    events.append(
        {"type": "query", "id": "t", "kind": "trending", "last": "PT1H", "k": 9, "ts": point["ts"]}
    )
    log = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    run = run_local(log, plan="shared", workers=2, rows=5, table={**table, "lexicon": str(path)})
    assert run.dead == []
    check(name, log, run, lexicon=lexicon)


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_asks_by_the_analyzer_of_its_state(name: str, tmp_path: Path) -> None:
    table, reference = ANALYZERS[name]
    log = tmp_path / "log.jsonl"
    log.write_bytes(sample_log(200))
    placewire.replay(log, tmp_path / "out", settings=table, state=tmp_path / "state")
    with placewire.open_snapshot(tmp_path / "state") as snapshot:
        for word in TELLING:
            asked = {"kind": "boolean", "where": word, "last": "PT1H", "limit": 1000}
            terms = set(reference(word))
            if not terms:
                with pytest.raises(ValueError, match="has no token"):
                    snapshot.answer(asked)
                continue
            wanted = [
                event["id"]
                for event in map(json.loads, log.read_bytes().splitlines())
                if event["type"] == "object" and terms <= set(reference(event["text"]))
            ]
            found = [item["object"] for item in snapshot.answer(asked)["objects"]]
            assert found == wanted[::-1]


def test_a_state_goes_on_only_with_the_same_analyzer(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(sample_log(20))
    state = tmp_path / "state"
    table = {"analyzer": "snowball:english", "stop_words": ["the", "of"]}
    placewire.replay(log, tmp_path / "out", settings=table, state=state)
    again = {"analyzer": "snowball:english", "stop_words": ["OF", "the", "of"]}
    placewire.replay(log, tmp_path / "out", settings=again, state=state)
    for other, named in (
        ({**table, "analyzer": "snowball:porter"}, "analyzer"),
        ({**table, "analyzer": "cjk-bigram"}, "analyzer, stemmer"),
        ({**table, "stop_words": ["the"]}, "stop_words"),
        ({"analyzer": "snowball:english"}, "stop_words"),
    ):
        with pytest.raises(placewire.Unusable, match=f"other settings: {named}$"):
            placewire.replay(log, tmp_path / "out", settings=other, state=state)
