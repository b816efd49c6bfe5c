"""The front door for Python: what it takes, what it gives, what it refuses."""

from __future__ import annotations

import json
import pkgutil
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import placewire
from checkout import ROOT

SUBSCRIBE = {
    "type": "subscribe",
    "id": "s",
    "ts": "2026-03-01T12:00:00Z",
    "kind": "boolean",
    "where": "coffee",
}
OBJECT = {
    "type": "object",
    "id": "o",
    "ts": "2026-03-01T12:00:01Z",
    "lon": 0,
    "lat": 0,
    "text": "coffee",
}
MATCH = {"seq": 1, "type": "match", "subscription": "s", "object": "o"}


def test_events_may_be_dicts_text_or_bytes() -> None:
    outcome = placewire.run([SUBSCRIBE, json.dumps(OBJECT), json.dumps(OBJECT).encode(), "bad"])
    assert outcome.results == [MATCH, {**MATCH, "seq": 2}]
    assert [letter["seq"] for letter in outcome.dead_letters] == [3]
    assert outcome.totals.events == 4


def test_deeply_nested_data_comes_back() -> None:
    data: Any = 1
    for _ in range(3_000):
        data = [data]
    line = json.dumps(OBJECT)[:-1] + ',"data":' + "[" * 3_000 + "1" + "]" * 3_000 + "}"
    (match,) = placewire.run([SUBSCRIBE, line], with_data=True).results
    depth = 0
    inner = match["data"]
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    assert (depth, inner) == (3_000, 1)


@pytest.mark.parametrize(
    "options",
    [{"workers": 0}, {"batch_rows": 0}, {"plan": "none"}, {"settings": {"max_ahead": "soon"}}],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(placewire.Unusable):
        placewire.run([SUBSCRIBE], **options)


def test_settings_may_be_a_dict() -> None:
    late = {**OBJECT, "ts": "2026-03-01T13:00:00Z"}
    assert placewire.run([SUBSCRIBE, late], settings={"max_ahead": "PT1M"}).results == []
    assert placewire.run([SUBSCRIBE, late], settings={"max_ahead": "PT1H"}).results == [MATCH]


def test_a_log_that_grew_after_an_unfinished_line_is_refused(tmp_path: Path) -> None:
    log, state = tmp_path / "log", tmp_path / "state"
    whole = json.dumps(SUBSCRIBE) + "\n" + json.dumps(OBJECT) + "\n"
    log.write_text(whole[:-30])
    placewire.replay(log, tmp_path / "results", state=state)
    placewire.replay(log, tmp_path / "results", state=state)  # nothing new: nothing wrong
    log.write_text(whole)
    with pytest.raises(placewire.Unusable, match="no newline"):
        placewire.replay(log, tmp_path / "results", state=state)
    assert placewire.replay(log, tmp_path / "results").results == 1


def test_types_are_for_users_too() -> None:
    assert files("placewire").joinpath("py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/placewire"]}  # all that is there, nothing left out


def test_no_submodule_hides_a_public_name() -> None:
    """Importing a submodule sets an attribute of its package, in place of a lazy public name."""
    modules = {module.name for module in pkgutil.iter_modules(placewire.__path__)}
    assert not modules & set(placewire.__all__)
