"""Run the Python and shell examples of the docs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from checkout import ROOT
from placewire.cli.main import main

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EXAMPLE = re.compile(r"<!-- run by tests/\S+ -->\n```(python|sh)\n(.*?)```", re.S)
STATEMENT = re.compile(r"[^\n]*<<'END'\n.*?\nEND\n|[^\n]+\n", re.S)


def examples(language: str) -> list[object]:
    return [
        pytest.param(
            code,
            id=f"{page.name}-{number}",
            marks=[pytest.mark.slow, pytest.mark.spark] if "spark" in code else [],
        )
        for page in PAGES
        for number, (found, code) in enumerate(EXAMPLE.findall(page.read_text()))
        if found == language
    ]


@pytest.mark.parametrize("code", examples("python"))
def test_example_runs(code: str, request: pytest.FixtureRequest) -> None:
    names = {"spark": request.getfixturevalue("spark")} if "spark" in code else {}
    exec(compile(code, "example", "exec"), names)


@pytest.mark.parametrize("code", examples("sh"))
def test_commands_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a block line by line: `placewire` in this process, the rest in a shell."""
    monkeypatch.chdir(tmp_path)
    for statement in STATEMENT.findall(code):
        if not statement.startswith("placewire "):
            subprocess.run(["bash", "-ec", statement], check=True)
            continue
        split = f"printf '%s\\0' {statement.removeprefix('placewire ')}"
        words = subprocess.run(["bash", "-ec", split], check=True, capture_output=True, text=True)
        monkeypatch.setattr(sys, "argv", ["placewire", *words.stdout.split("\0")[:-1]])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, statement


def test_there_are_examples() -> None:
    assert len(examples("python")) >= 10
    assert len(examples("sh")) >= 8
