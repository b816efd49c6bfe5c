"""Errors in a config file of `placewire run`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from placewire import Unusable
from placewire.cli.main import app
from placewire.spark.config import read_config
from run_config import EVENTS, write_config

SOURCE = "[[source]]\ntakes = 'events'\nformat = 'jsonl'\npath = 'a'\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "needs a [[source]]"),
        ("[[source]]\ntakes = 'events'\nformat = 'xml'\npath = 'a'", "got 'xml'"),
        ("[[source]]\ntakes = 'events'\nformat = 'jsonl'", "needs path"),
        ("[[source]]\ntakes = 'all'\nformat = 'jsonl'\npath = 'a'", "'all'"),
        ("[[source]]\ntakes = 'events'\nformat = 'jsonl'\npath = 'a'\nurl = 'b'", "url"),
        ("[[source]]\ntakes = 'events'\nformat = 'jsonl'\npath = 'a'\ntopic = 'b'", "has no topic"),
        (f"{SOURCE}rows = 0", "rows must be 1 or more, got 0"),
        (f"{SOURCE.replace('jsonl', 'delta')}schema = 'id string'", "has no schema"),
        (f"{SOURCE}columns = {{ text = 'body' }}", "columns needs schema"),
        (f"{SOURCE}options = {{ maxFilesPerTrigger = 'x' }}", "maxFilesPerTrigger must be"),
        (f"{SOURCE}[[sink]]\nname = '../s'\nformat = 'stdout'", "name must be letters"),
        (f"{SOURCE}[[sink]]\nname = 's'\nformat = 'csv'\npath = './a'", "the path of source 1"),
        (f"every = 'soon'\n{SOURCE}", "every must be as '5 seconds', got 'soon'"),
        (f"cache_gb = 0\n{SOURCE}", "cache_gb must be greater than 0"),
        ("workers = 0", "workers"),
        ("x = [", "is not TOML"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, error: str, tmp_path: Path) -> None:
    config = tmp_path / "wire.toml"
    head = 'state = "state"\n' if "source" in text or not text else 'state = "s"\nsource = []\n'
    config.write_text(head + (text if text else "source = []"))
    shown = CliRunner().invoke(app, ["run", "--config", str(config)])
    assert isinstance(shown.exception, Unusable)
    assert error in str(shown.exception) or "needs a [[source]]" in str(shown.exception)
    assert str(config) in str(shown.exception)


def test_two_sinks_have_two_names(tmp_path: Path) -> None:
    sink = '[[sink]]\nname = "a"\nformat = "jsonl"\npath = "{}"\n'
    with pytest.raises(Unusable, match="two sinks are named 'a'"):
        read_config(write_config(tmp_path, EVENTS + sink.format("b") + sink.format("c")))
