"""`placewire import` as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import placewire
from checkout import ROOT
from imports import (
    QUERY,
    TS,
    text,
)
from placewire.cli.main import app
from placewire.model.errors import Unusable

# The command


def ask(*words: str, typed: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["import", *words], input=typed)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.jsonl"
    queries = [QUERY, {"range": {"price": {"lt": 5}}}, text({"query": "tea", "boost": 3})]
    hits = [{"_id": f"q{n}", "_source": {"query": query}} for n, query in enumerate(queries)]
    path.write_text("".join(json.dumps(hit) + "\n" for hit in hits))
    return path


def test_the_command_writes_a_log_and_says_what_came_of_it(dump: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "out.jsonl", tmp_path / "report.jsonl"
    result = ask(
        str(dump), "--from", "elasticsearch", "--out", str(out), "--report", str(report), "--ts", TS
    )
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "queries 3, translated 2, 1 of them with notes, not translated 1" in result.stderr
    assert "1  range has no counterpart\n           q1 at query.range\n" in result.stderr
    assert "boosts and scores are left out" in result.stderr
    log = [json.loads(line) for line in out.read_text().splitlines()]
    assert [event["id"] for event in log] == ["q0", "q2"]
    entries = [json.loads(line) for line in report.read_text().splitlines()]
    assert entries[0] == {
        "line": 2, "id": "q1", "refused": "range has no counterpart", "where": "query.range",
    }  # fmt: skip
    assert entries[1]["subscriptions"] == ["q2"]
    thing = {"type": "object", "id": "o", "ts": TS, "lon": 0, "lat": 0, "text": "Tea, please"}
    assert [match["subscription"] for match in placewire.run([*log, thing]).results] == ["q2"]


def test_the_command_as_a_filter_and_as_json(dump: Path, tmp_path: Path) -> None:
    result = ask("-", "--from", "opensearch", "--json", "--ts", TS, typed=dump.read_bytes())
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["q0", "q2"]
    told = json.loads(result.stderr)
    assert (told["queries"], told["translated"], told["with_notes"], told["refused"]) == (
        3,
        2,
        1,
        1,
    )
    assert told["refusals"] == [
        {
            "what": "range has no counterpart",
            "queries": 1,
            "samples": [{"line": 2, "id": "q1", "where": "query.range"}],
        }
    ]
    result = ask(str(dump), "--from", "opensearch", "--json", "--out", str(tmp_path / "out"))
    assert json.loads(result.stdout)["subscriptions"] == 2


def test_the_summary_is_as_the_page_shows_it(tmp_path: Path) -> None:
    circle = {"geo_distance": {"distance": "100m", "location": [0, 0]}}
    queries = {
        "free-coffee": {"bool": {"must": text("free coffee"), "filter": circle}},
        "swing": {"term": {"message": "Swing"}},
        "cheap-tea": {"bool": {"must": [text("tea"), {"range": {"price": {"lt": 5}}}]}},
        "fire": {"bool": {"should": [text("fire"), circle]}},
    }
    hits = [{"_id": name, "_source": {"query": query}} for name, query in queries.items()]
    path = tmp_path / "queries"
    path.write_text("\n".join(map(json.dumps, hits)))
    said = re.sub(r"\d+\.\d s", "0.0 s", ask(str(path), "--from", "elasticsearch").stderr)
    page = ROOT / "docs" / "how-to" / "migrate.md"
    assert f"```\n{said}```" in page.read_text()


def test_names_that_a_terminal_would_not_like(tmp_path: Path) -> None:
    path = tmp_path / "queries"
    path.write_text(json.dumps({"_id": "\x1b[2J", "query": {"\x1b]0;\n" * 99: {}}}))
    result = ask(str(path), "--from", "elasticsearch", "--text-field", "t", "--place-field", "p")
    assert result.exit_code == 1
    assert "\x1b" not in result.stderr


def test_it_exits_0_if_all_is_translated(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_text(json.dumps({"_id": "a", "query": QUERY}))
    assert ask(str(path), "--from", "elasticsearch").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "solr"], "must be one of elasticsearch, opensearch, tile38, got 'solr'"),
        (["--from", "elasticsearch", "--ts", "today"], "--ts: a time must be RFC 3339"),
        (["--from", "elasticsearch", "--key", "k"], "--key"),
        (["--from", "tile38", "--text-field", "t"], "no fields"),
        (["--from", "elasticsearch", "--out", "{dump}"], "is also the input file"),
        (["--from", "elasticsearch", "--out", "{dump}/x"], "cannot be written"),
        (["--from", "tile38"], "no hooks or chans"),
    ],
)
def test_what_is_unusable_is_said(dump: Path, words: list[str], said: str) -> None:
    result = ask(str(dump), *(word.format(dump=dump) for word in words))
    assert said in (
        str(result.exception) if isinstance(result.exception, Unusable) else result.stderr
    )
    assert dump.read_text().count("\n") == 3


def test_a_file_that_is_not_there_or_has_nothing(tmp_path: Path) -> None:
    result = ask(str(tmp_path / "none"), "--from", "elasticsearch")
    assert "none: cannot be read: No such file" in str(result.exception)
    (tmp_path / "empty").write_text("\n")
    assert "has no fences" in str(ask(str(tmp_path / "empty"), "--from", "tile38").exception)
    assert "has no queries" in str(ask(str(tmp_path / "empty"), "--from", "opensearch").exception)
