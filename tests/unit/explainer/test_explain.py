"""Explanations: verdicts are the engine's and the oracle's, reasons are those that decided."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import oracle
from expressions import nodes
from logs import (
    IDS,
    flowing,
    lats,
    logs,
    lons,
    nearest,
    regions,
    trees,
    trending,
    weights,
    words,
)
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.cli.main import app
from placewire.explainer.context import NotRetained, open_context
from placewire.explainer.explain import explain
from placewire.explainer.object import find_object
from placewire.explainer.subscription import find_all_locations
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.kinds.boolean.explain import count_probe
from placewire.kinds.boolean.match import make_probe, match_segment
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.expression import (
    ALL,
    ANY,
    NONE,
    Outline,
    compile_expression,
    holds,
    outline_program,
)
from placewire.model.kinds import RELEVANT
from placewire.model.settings import parse_settings
from placewire.model.times import format_timestamp
from placewire.storage.layout import StateDir
from profiles import examples


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    text = " ".join(draw(st.lists(words, max_size=5)))
    return {"lon": draw(lons), "lat": draw(lats), "text": text}


@st.composite
def subscriptions(draw: st.DrawFn) -> dict[str, Any]:
    """A subscription of any kind; some are invalid."""
    kind = draw(st.sampled_from(["boolean", "nearest", "relevant", "trending"]))
    fields: dict[str, Any] = {"kind": kind}
    if kind == "boolean":
        has = draw(st.sampled_from(["both", "region", "where"]))
        if has != "where":
            fields["region"] = draw(regions)
        if has != "region":
            fields["where"] = draw(trees)
    elif kind == "nearest":
        fields |= draw(nearest())
    elif kind == "relevant":
        fields |= {k: v for k, v in draw(nearest()).items() if k not in ("mode", "within_m")}
        fields |= draw(weights())
    else:
        fields |= draw(trending())
        if draw(st.booleans()):
            fields["region"] = draw(regions)
    return fields


def as_event(kind: str, fields: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "id": "x", "ts": "2026-03-01T12:00:00Z", **fields}).encode()


LEXICON = {"documents": 50, "df": {"coffee": 20, "tea": 3, "free": 50}}


@pytest.mark.parametrize("lexicon", [None, LEXICON])
@settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))
@given(placed=objects(), asked=subscriptions())
def test_the_verdict_on_a_pair_is_the_oracles(
    lexicon: dict[str, Any] | None,
    tmp_path_factory: pytest.TempPathFactory,
    placed: dict[str, Any],
    asked: dict[str, Any],
) -> None:
    chosen = parse_settings({})
    if lexicon is not None:
        path = tmp_path_factory.getbasetemp() / "lexicon.json"
        path.write_text(json.dumps(lexicon))
        chosen = parse_settings({"lexicon": str(path)})
    rules = oracle.read_settings({"lexicon": lexicon})
    try:
        ask = oracle.read_event(1, as_event("subscribe", asked), None, rules)
    except oracle.InvalidEvent:
        with pytest.raises(InvalidEvent):
            explain(None, placed, asked, chosen)
        return
    one = oracle.read_event(0, as_event("object", placed), None, rules)
    assert isinstance(ask, oracle.Ask)
    assert isinstance(one, oracle.PlacedObject)
    told = explain(None, placed, asked, chosen)
    json.dumps(told)
    assert told["object"]["terms"] == sorted(one.terms)
    if ask.kind == "boolean":
        assert told["matches"] is oracle.matches(ask, one)
        assert told["region"]["inside"] is oracle.in_region(ask, one)
        if ask.where is not None:
            assert told["where"]["holds"] is ask.where.holds(one.terms)
            assert told["where"]["tree"]["holds"] is ask.where.holds(one.terms)
        found = told["cost"]["matches"] == 1
        assert found is told["matches"]
        assert not found or told["cost"]["looked_at"]
    elif ask.kind == "nearest":
        distance = oracle.nearest_distance(ask, one)
        assert told["matches"] is (distance is not None)
        assert distance is None or told["nearest"]["distance_m"] == distance
    elif ask.kind == "relevant":
        score = oracle.relevance(ask, one, rules)
        assert told["matches"] is (score is not None)
        assert told["relevant"]["score"] == score
        for term in told["relevant"]["terms"]:
            known = None if lexicon is None else term["term"] in lexicon["df"]
            assert term.get("in_lexicon") is known
        if score is not None:
            parts = told["relevant"]
            whole = parts["alpha"] * parts["ssim"] + (1 - parts["alpha"]) * parts["tsim"]
            assert whole == pytest.approx(score, abs=1e-9)
    else:
        assert told["region"]["inside"] is oracle.in_region(ask, one)
        assert told["matches"] is oracle.in_region(ask, one)


def as_truth(outline: Outline, present: list[bool]) -> bool:
    if isinstance(outline, int):
        return present[outline]
    kind, children = outline
    held = [as_truth(child, present) for child in children]
    return {ALL: all(held), ANY: any(held), NONE: not any(held)}[kind]


@settings(max_examples=examples(300))
@given(node=nodes, data=st.data())
def test_an_outline_means_what_its_program_means(node: Any, data: st.DataObject) -> None:
    program = compile_expression(node)
    outline = outline_program(program.on_true, program.on_false)
    assert outline is not None
    for _ in range(8):
        terms = data.draw(st.sets(st.sampled_from(sorted(set(program.terms)))))
        present = [term in terms for term in program.terms]
        assert as_truth(outline, present) is holds(program, terms)


class Kept:
    """A state that a log went into."""

    def __init__(
        self,
        folder: Path,
        log: bytes,
        rows: int = 7,
        plan: str = "shared",
        table: dict[str, Any] | None = None,
        swept: bool = False,
    ) -> None:
        path = folder / "log.jsonl"
        path.write_bytes(log)
        self.state = StateDir(folder / "state")
        coordinator = Coordinator(
            self.state, parse_settings(table or {}), identify_log(path), plan, 2, sample_events=0
        )
        for manifest in replay_log(coordinator, LogSource(str(path)), rows):
            if swept:
                coordinator.delivered = manifest.batch
        coordinator.close()
        self.results = oracle.replay(log).results
        self.ground = ground = open_context(self.state, None)
        self.seqs = [int(seq) for section in ground.sections for seq in section.retained.seq]
        self.names = [name for name in IDS if find_all_locations(ground, name)]

    def explain(self, placed: Any, asked: Any) -> dict[str, Any]:
        return explain(self.state, placed, asked)


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(log=logs | flowing(), rows=st.sampled_from([1, 7, 1000]))
def test_explanations_of_a_state_agree_with_what_it_gave(log: bytes, rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder), log, rows)
        matched = {(r["seq"], r["subscription"]) for r in kept.results if r["type"] == "match"}
        for name in kept.names:
            told = [kept.explain(seq, name) for seq in kept.seqs]
            for one in told:
                check_boolean(one, (one["object"]["seq"], name) in matched)
            latest = kept.explain(NOBODY, name)
            kind, since = latest["subscription"]["kind"], latest["interval"]["from_seq"]
            kinds = {place.kind for place in find_all_locations(kept.ground, name)}
            if kind == "relevant" and kinds != {RELEVANT}:
                continue  # objects from before it met another one
            if kind in ("nearest", "relevant") and latest["interval"]["live"]:
                held = [
                    one["object"]["id"]
                    for one in told
                    if one["interval"]["from_seq"] == since and one[kind].get("standing") == "in"
                ]
                assert sorted(held) == sorted(result_of(kept.results, name, since))


NOBODY = {"lon": 0, "lat": 0, "text": ""}


def check_boolean(told: dict[str, Any], matched: bool) -> None:
    if told["subscription"]["kind"] != "boolean":
        return
    interval = told["interval"]
    if matched:
        assert told["matches"] is not False, told
        assert told["cost"]["looked_at"]
    elif interval["now_is_exact"] or interval["expires"] is None:
        assert not told["matches"], told


def result_of(results: list[dict[str, Any]], name: str, since: int) -> list[str]:
    """The ids in the result of a ranked subscription at the end of the log."""
    held: list[str] = []
    for result in results:
        if result["type"] == "update" and result["subscription"] == name and result["seq"] >= since:
            for dropped in result["drop"]:
                held.remove(dropped["object"])
            held += [added["object"] for added in result["add"]]
    return held


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(log=logs | flowing(), placed=objects(), plan=st.sampled_from(["shared", "kdt", "termhash"]))
def test_an_object_that_is_explained_does_what_was_said_when_it_comes(
    log: bytes, placed: dict[str, Any], plan: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder), log, 9, plan)
        now_us = open_context(kept.state, None).manifest.now_us  # type: ignore[union-attr]
        ts = "2026-03-01T12:00:00Z" if now_us is None else format_timestamp(now_us)
        placed |= {"id": "newcomer", "ts": ts}
        line = as_event("object", placed)
        seq = len(oracle.lines_of(log))
        after = [r for r in oracle.replay(log + line).results if r["seq"] == seq]
        matched = {r["subscription"] for r in after if r["type"] == "match"}
        entered = {
            r["subscription"]
            for r in after
            if r["type"] == "update" and "newcomer" in [one["object"] for one in r["add"]]
        }
        for name in kept.names:
            told = kept.explain(placed, name)
            kind = told["subscription"]["kind"]
            if kind == "boolean":
                assert told["matches"] is (name in matched), told
                assert told["cost"].get("found", False) is told["matches"]
                if plan != "shared" and told["matches"]:
                    assert len(told["plan"]["pair_meets_at"]) >= 1
            elif kind in ("nearest", "relevant"):
                enters = told["matches"] and told[kind]["standing"] == "would enter"
                assert enters is (name in entered), told


def event(kind: str, name: str, second: int, /, **fields: Any) -> dict[str, Any]:
    ts = f"2026-03-01T12:{second // 60:02d}:{second % 60:02d}Z"
    return {"type": kind, "id": name, "ts": ts, **fields}


def written(events: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in events)


SQUARE = {"box": [-1, -1, 1, 1]}
COFFEE = {"kind": "boolean", "region": SQUARE, "where": "coffee AND (free OR sale)"}
LOG = [
    event("object", "early", 0, lon=0, lat=0, text="free coffee"),
    event("subscribe", "s", 1, **COFFEE),
    event("object", "o", 2, lon=0, lat=0, text="Free coffee!"),
    event("subscribe", "brief", 3, kind="boolean", where="coffee", expires="2026-03-01T12:00:05Z"),
    event("object", "tea", 4, lon=0, lat=2, text="tea for sale"),
    event("subscribe", "near", 4, kind="nearest", lon=0, lat=0, keywords=["coffee"], k=1),
    event("object", "o", 6, lon=0, lat=0.5, text="coffee"),
    event("subscribe", "s", 7, kind="boolean", where="tea"),
    event("object", "later", 8, lon=0, lat=1, text="free coffee for sale"),
    event("unsubscribe", "s", 9),
    event("object", "last", 10, lon=0.25, lat=0, text="tea, coffee, jazz"),
    event("subscribe", "jazz", 10, kind="relevant", lon=0, lat=0, keywords=["jazz", "tea"], k=1,
          alpha=0.5, reach_m=1e5),
    event("subscribe", "trend", 10, kind="trending", region=SQUARE, k=3, window="PT20S",
          every="PT10S"),
]  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("explained"), written(LOG), rows=2)


def test_of_several_subscriptions_of_an_id_it_is_the_one_that_the_object_met(kept: Kept) -> None:
    told = kept.explain(2, "s")
    assert told["matches"] is True
    assert told["interval"]["from_seq"] == 1
    assert told["verdict"] == "Match: the object has 'coffee' and 'free'; it is inside the box."
    assert kept.explain(8, "s")["interval"]["from_seq"] == 7
    early = kept.explain(0, "s")
    assert (early["matches"], early["interval"]["live"]) == (False, False)
    assert early["interval"]["why"] == "it was not yet subscribed: it began at seq 1"


def test_what_ended_a_subscription_is_named(tmp_path: Path) -> None:
    kept = Kept(tmp_path, written(LOG), rows=1_000)
    assert kept.explain(10, "s")["interval"]["why"] == "it was ended by event 9"
    told = kept.explain(2, "s")["interval"]
    assert told["ended_by_seq"] == 7
    assert told["why"] == "it was live from seq 1 until event 7 replaced it"
    assert kept.explain(NOBODY, "s")["interval"]["live"] is False


def test_what_has_expired_was_live_before(kept: Kept) -> None:
    told = kept.explain(6, "brief")
    assert told["matches"] is False
    assert told["interval"]["why"] == "it expired at 2026-03-01T12:00:05Z"
    assert "looked at, refused: it expired" in told["cost"]["why"]


def test_an_id_is_the_latest_object_that_has_it(kept: Kept) -> None:
    told = kept.explain("o", "near")
    assert (told["object"]["seq"], told["object"]["namesakes"]) == (6, 1)


def test_a_posting_that_was_never_looked_at_says_why(kept: Kept) -> None:
    told = kept.explain(4, "near")
    assert told["matches"] is False
    assert "'coffee', which the object lacks" in told["cost"]["why"]
    assert told["cost"]["looked_at"] is False
    assert told["nearest"]["keywords"] == [{"term": "coffee", "holds": False}]


def test_the_k_nearest_keep_others_out(kept: Kept) -> None:
    entered = kept.explain(10, "near")["nearest"]
    assert (entered["standing"], entered["rank"]) == ("in", 1)
    dropped = kept.explain(6, "near")["nearest"]
    assert dropped["standing"] == "too far"
    assert dropped["too_far_by_m"] == round(dropped["distance_m"] - entered["distance_m"], 3)
    nearer = kept.explain({"lon": 0.1, "lat": 0, "text": "coffee"}, "near")["nearest"]
    assert (nearer["standing"], nearer["kth_m"]) == ("would enter", entered["distance_m"])


def test_a_score_is_taken_apart(kept: Kept) -> None:
    told = kept.explain(10, "jazz")["relevant"]
    assert told["standing"] == "in"
    assert [(one["term"], one["holds"]) for one in told["terms"]] == [("jazz", True), ("tea", True)]
    assert told["tsim"] == pytest.approx(2 * 0.5**0.5 / 3**0.5)
    low = kept.explain(4, "jazz")["relevant"]
    assert (low["standing"], low["kth_score"]) == ("too low", told["score"])
    assert low["too_low_by"] == pytest.approx(told["score"] - low["score"])


def test_reports_that_count_an_object_are_named(kept: Kept) -> None:
    given = {"lon": 0, "lat": 0, "text": "tea tea", "ts": "2026-03-01T12:00:15Z"}
    told = kept.explain(given, "trend")
    assert told["matches"] is True
    due = ["2026-03-01T12:00:20Z", "2026-03-01T12:00:30Z"]
    assert told["trending"]["first_due"] == due
    assert told["trending"]["adds_terms"] == ["tea"]
    assert "cost" not in told
    assert kept.explain(10, "trend")["interval"]["live"] is False
    assert kept.explain(given | {"lon": 2}, "trend")["matches"] is False
    late = kept.explain(given | {"ts": "2026-03-01T11:00:00Z"}, "trend")
    assert (late["matches"], late["trending"]["reports"]) == (False, 0)


def test_json_of_a_subscription_of_the_state_is_that_one(kept: Kept) -> None:
    asked = {"id": "near", "kind": "nearest", "lon": 0, "lat": 0, "keywords": ["coffee"], "k": 1}
    assert kept.explain(10, asked)["nearest"]["standing"] == "in"
    other = kept.explain(10, asked | {"k": 2})
    assert other["subscription"]["in_state"] is False
    assert "another one" in other["subscription"]["note"]


def test_words_that_no_object_has_are_shown_by_hash(kept: Kept, tmp_path: Path) -> None:
    log = [event("subscribe", "s", 0, kind="boolean", where="unheard OR coffee"), LOG[0]]
    tree = Kept(tmp_path, written(log)).explain(1, "s")["where"]["tree"]
    assert [leaf["term"] for leaf in tree["any"]] == [None, "coffee"]
    assert len(tree["any"][0]["hash"]) == 16
    assert tree["holds"] is True


@pytest.mark.parametrize(
    ("placed", "asked", "error"),
    [
        (99, "s", "object 99: the state ends before seq 13"),
        (1, "s", "object 1: is not retained, or the event of this seq is no object"),
        ("nobody", "s", "object 'nobody': no retained object has this id"),
        (2, "nobody", "subscription 'nobody': is not in the state"),
        ({"lon": 0, "lat": 91, "text": ""}, "s", "object: lat must be in"),
        ({"lon": 0, "text": ""}, "s", "object: the event is missing the field `lat`"),
        ({"type": "query"}, "s", "object: type must be 'object', got 'query'"),
        (NOBODY | {"ts": "2036-01-01T00:00:00Z"}, "s", "object: ts is more than max_ahead"),
        (2, {"kind": "boolean"}, "subscription: needs a region or a where"),
        (2, {"kind": "boolean", "region": {"box": [0, 5, 1, 2]}}, "region.box: south must be"),
        (2, {"kind": "boolean", "where": "(a"}, "subscription: where: a parenthesis is not"),
        (2, {"id": "x", "kind": "boolean", "where": "!"}, "subscription 'x': where: '!' has no"),
        (2, {"kind": "nearest", "k": 0}, "subscription: a nearest subscription needs the field"),
        (True, "s", "object: must be JSON, a seq or an id"),
        (2, 5, "subscription: must be JSON or an id"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_refused(
    kept: Kept, placed: Any, asked: Any, error: str
) -> None:
    with pytest.raises(InvalidEvent) as caught:
        kept.explain(placed, asked)
    assert error in str(caught.value)


def test_seqs_and_ids_need_a_state() -> None:
    with pytest.raises(InvalidEvent, match="object 3: needs a state"):
        explain(None, 3, {"kind": "boolean", "where": "a"})
    with pytest.raises(InvalidEvent, match="subscription 's': needs a state"):
        explain(None, NOBODY, "s")


def test_other_settings_than_the_states_are_refused(kept: Kept) -> None:
    with pytest.raises(Unusable, match="already has settings"):
        explain(kept.state, 2, "s", parse_settings({"retention": "PT1H"}))
    with pytest.raises(NotRetained):
        explain(kept.state, 99, "s", parse_settings({}))


def run_command(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


def test_the_command_prints_the_verdict_first(kept: Kept) -> None:
    state = str(kept.state.root)
    done = run_command("--state", state, "--object", "8", "--subscription", "s")
    assert done.exit_code == 0
    first, _, rest = done.stdout.partition("\n")
    assert first == "No match: the object lacks 'tea'."
    assert "tea not there" in rest
    assert "never looked at: it would be posted under 'tea', which the object lacks" in rest
    done = run_command("--state", state, "--object", "8", "--subscription", "s", "--json")
    assert json.loads(done.stdout) == kept.explain(8, "s")


@pytest.mark.parametrize("name", ["s", "brief", "near", "jazz", "trend"])
@pytest.mark.parametrize("placed", ["0", "6", "last", json.dumps(NOBODY)])
def test_every_kind_can_be_printed(kept: Kept, name: str, placed: str) -> None:
    state = str(kept.state.root)
    done = run_command("--state", state, "--object", placed, "--subscription", name)
    assert done.exit_code == 0
    assert done.stdout.partition(":")[0] in (
        *("Match", "No match", "A candidate", "Not a candidate", "Counted", "Not counted"),
    )
    assert "None" not in done.stdout


def test_an_id_of_digits_is_a_json_string(tmp_path: Path) -> None:
    kept = Kept(tmp_path, written([event("object", "0", 0, **NOBODY), LOG[1]]))
    wish = json.dumps({"kind": "boolean", "where": "coffee"})
    state = str(kept.state.root)
    for name in ("0", '"0"'):
        done = run_command("--state", state, "--object", name, "--subscription", wish)
        assert "object 0 (seq 0" in done.stdout
    done = run_command("--state", state, "--object", "1", "--subscription", wish)
    assert isinstance(done.exception, Unusable)


@pytest.mark.parametrize(
    ("placed", "asked", "error"),
    [
        ("{bad", "s", "the object must be one JSON object"),
        ('{"lon":0,"lon":1}', "s", "key 'lon' is repeated"),
        ("2", "{", "the subscription must be one JSON object"),
        ("77", "s", "object 77: the state ends"),
    ],
)
def test_the_command_refuses_in_one_line(kept: Kept, placed: str, asked: str, error: str) -> None:
    done = run_command("--state", str(kept.state.root), "--object", placed, "--subscription", asked)
    assert isinstance(done.exception, Unusable)
    assert error in str(done.exception)


def test_an_index_that_descends_is_counted_as_matching_counts_it() -> None:
    """Many subscriptions of one word in small boxes: postings in finer cells, and in doubt."""
    log = [
        event("subscribe", f"s{i}", 0, kind="boolean", where=["coffee", "coffee AND free"][i % 2],
              region={"box": [i / 50, 0, i / 50 + 0.5, 1]})
        for i in range(200)
    ]  # fmt: skip
    log.append(event("object", "o", 1, lon=1.01, lat=0.5, text="free coffee"))
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder), written(log), rows=1_000)
        ground = open_context(kept.state, None)
        expected = [r for r in kept.results if r["type"] == "match"]
        told = kept.explain(200, "s40")
        assert told["cost"]["matches"] == len(expected)
        assert 0 < told["cost"]["candidates"] < 200
        seen = find_object(ground, 200)
        live = ground.segments[0]
        probe = make_probe(*seen.columns(0))
        counts = count_probe(probe, live.segment.index)
        assert counts[3] == match_segment(probe, live.segment).candidates
        reached = [post for post in told["cost"]["posted"] if post["reached"]]
        assert len(reached) == 1
        west, south, east, north = reached[0]["cell"]["box"]
        assert west <= 1.01 <= east
        assert south <= 0.5 <= north
        never = kept.explain(200, "s199")
        assert never["cost"]["looked_at"] is False
        assert "not have the object's place" in never["cost"]["why"]


def test_ends_that_the_state_has_forgotten_are_bounded(tmp_path: Path) -> None:
    """An ended row that no merge has dropped, when the blocks that ended it are gone."""
    log = [
        event("subscribe", f"s{i}", 0, kind="boolean", where=f"w{i} OR other") for i in range(500)
    ]
    met = event("object", "met", 1, lon=0, lat=0, text="w7")
    log += [met, event("unsubscribe", "s7", 2), met]
    log += [event("object", f"o{i}", 3, lon=0, lat=0, text="w7") for i in range(600)]
    log += [event("unsubscribe", "s8", 3)]
    kept = Kept(tmp_path, written(log), rows=50, swept=True)
    told = [kept.explain(seq, "s7") for seq in (500, 502, 1102)]
    assert [one["matches"] for one in told] == [None, None, False]
    assert [one["cost"]["looked_at"] for one in told] == [True] * 3
    interval = told[0]["interval"]
    assert interval["ended_after_seq"] == 7
    assert 501 <= interval["ended_by_seq_at_most"] < 1102
    assert told[0]["verdict"].startswith("Cannot be told: whether the subscription was live")
    # It was live at a commit that is still there.
    assert kept.explain(1102, "s8")["interval"]["ended_by_seq"] == 1103
    assert kept.explain(500, "s8")["interval"]["live"] is True


def test_a_stem_is_what_an_analyzer_makes_of_a_word(tmp_path: Path) -> None:
    table = {"analyzer": "snowball:english", "stop_words": ["the"]}
    log = [
        event("subscribe", "s", 0, kind="boolean", where="running AND NOT dogs"),
        event("object", "o", 1, lon=0, lat=0, text="the run of the dog"),
        event("object", "p", 1, lon=0, lat=0, text="runs"),
    ]
    kept = Kept(tmp_path, written(log), table=table)
    told = kept.explain(1, "s")
    assert told["object"]["terms"] == ["dog", "of", "run"]
    assert told["verdict"] == "No match: the object has 'dog', which is excluded."
    assert kept.explain(2, "s")["matches"] is True
    given = {"lon": 0, "lat": 0, "text": "Running dogs"}
    asked = {"kind": "boolean", "where": "run AND NOT dog"}
    assert kept.explain(given, asked)["where"]["tree"]["holds"] is False
    assert explain(None, given, asked, parse_settings(table))["matches"] is False


def test_ids_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    kept = Kept(tmp_path, written([event("object", "\x1b[31m", 0, **NOBODY), LOG[1]]))
    done = run_command("--state", str(kept.state.root), "--object", "0", "--subscription", "s")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_how_a_log_was_cut_does_not_turn_a_verdict(rows: int, tmp_path: Path) -> None:
    """What was replaced is told, or said to be forgotten; never taken for what replaced it."""
    log = [
        event("subscribe", "r", 0, kind="boolean", where="apple"),
        event("object", "a", 1, lon=0, lat=0, text="an apple"),
        event("subscribe", "r", 2, kind="boolean", where="pear"),
        *(event("object", f"o{i}", 3 + i, lon=0, lat=0, text="pear") for i in range(7)),
    ]
    kept = Kept(tmp_path, written(log), rows=rows, swept=True)
    told = kept.explain(1, "r")
    if rows == 100:
        assert told["matches"] is True
        assert told["interval"]["why"] == "it was live from seq 0 until event 2 replaced it"
    else:
        assert told["matches"] in (True, None), told
    if rows == 1:
        assert told["matches"] is None
        assert told["verdict"].startswith(
            "Cannot be told: whether the subscription was live: this one began at seq 2,"
        )
    assert kept.explain(5, "r")["matches"] is True
