"""The files of the live map: its libraries, their licences and how they are fetched; its places."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

from checkout import ROOT
from page_libraries import need_libraries
from placewire.demo.places import places
from placewire.serve.http.live_map import LIBRARIES

PAGE = ROOT / "src/placewire/serve/page"
VENDOR = "src/placewire/serve/page/vendor"
LOCK = (ROOT / "page/package-lock.json").read_text()

NODE = """#!/bin/sh
[ "$1" = --version ] && echo v20.0.0 && exit
vendor=../src/placewire/serve/page/vendor
rm -rf $vendor && mkdir -p $vendor && touch $vendor/library.js && echo "$1" >> vendor-runs
"""
NPM = """#!/bin/sh
echo "$@" >> npm-runs
"""
BROKEN_NPM = """#!/bin/sh
echo "npm warn old node" >&2
echo "npm error code ENOTFOUND" >&2
echo "npm error syscall getaddrinfo" >&2
echo "npm error network more" >&2
exit 1
"""


def test_the_places_are_those_of_the_city() -> None:
    named = json.loads((PAGE / "geo/places.json").read_text())["features"]
    assert {place["properties"]["name"] for place in named} == {
        *(city.name for city in places().cities),
        *(spot.name for spot in places().hot_spots),
    }


def test_the_libraries_are_those_of_the_lock_file() -> None:
    need_libraries()
    locked = json.loads(LOCK)["packages"]
    said = (PAGE / "vendor/README.md").read_text()
    for name in ("maplibre-gl", "uplot", "world-atlas"):
        assert f"| {name} | {locked[f'node_modules/{name}']['version']} |" in said
        assert (PAGE / "vendor" / name / "LICENSE.txt").is_file()


def test_packages_are_locked_by_hash_and_not_by_address() -> None:
    assert "resolved" not in LOCK
    assert "registry" not in LOCK
    packages = json.loads(LOCK)["packages"]
    assert [name for name, package in packages.items() if name and "integrity" not in package] == []


def test_each_dependency_is_in_the_notice() -> None:
    locked = json.loads(LOCK)["packages"]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "NOTICE").read_text().splitlines()
        if line.startswith("|")
    ]
    listed = {name: (version, licence) for name, version, licence, *_ in rows[2:]}
    wanted = json.loads((ROOT / "page/package.json").read_text())["devDependencies"]
    assert listed == {
        name: (version, locked[f"node_modules/{name}"]["license"])
        for name, version in wanted.items()
    }


def test_git_has_no_libraries() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    for command in (["ls-files", VENDOR], ["check-ignore", "--quiet", f"{VENDOR}/any.js"]):
        told = subprocess.run(
            ["git", *command], check=True, cwd=ROOT, capture_output=True, text=True
        )
        assert told.stdout == ""


class Checkout(NamedTuple):
    """A copy of what `page/fetch.py` reads, with programs instead of node and npm."""

    root: Path

    def program(self, name: str, text: str) -> None:
        path = self.root / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def fetch(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(self.root / "page/fetch.py"), *options], check=False,
            env={**os.environ, "PATH": f"{self.root / 'bin'}:/usr/bin:/bin"},
            capture_output=True, text=True,
        )  # fmt: skip

    def runs(self, name: str) -> int:
        path = self.root / f"page/{name}-runs"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    shutil.copytree(ROOT / "page", tmp_path / "page", ignore=shutil.ignore_patterns(".fetch*"))
    (tmp_path / "src/placewire/serve/page").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    made = Checkout(tmp_path)
    made.program("node", NODE)
    made.program("npm", NPM)
    return made


def test_libraries_are_fetched_when_their_lock_file_changes(checkout: Checkout) -> None:
    told = checkout.fetch()
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == "Fetching the libraries of the live map with npm\n"
    assert checkout.fetch("--optional").stdout == ""
    assert "up to date" in checkout.fetch().stdout
    assert (checkout.runs("npm"), checkout.runs("vendor")) == (1, 1)
    for number, name in enumerate(("package-lock.json", "vendor.mjs"), 2):
        with (checkout.root / "page" / name).open("a") as file:
            file.write("\n")
        assert checkout.fetch("--optional").returncode == 0
        assert (checkout.runs("npm"), checkout.runs("vendor")) == (number, number)
    (checkout.root / VENDOR / "library.js").unlink()
    assert checkout.fetch().returncode == 0
    assert checkout.runs("vendor") == 4


def test_libraries_that_cannot_be_fetched_are_a_warning_in_setup(checkout: Checkout) -> None:
    checkout.program("npm", BROKEN_NPM)
    why = "npm could not fetch the packages: code ENOTFOUND, syscall getaddrinfo"
    told = checkout.fetch("--optional")
    assert (told.returncode, told.stderr.count("\n")) == (0, 1)
    assert told.stderr.startswith(f"warning: live map: {why}; it stays unavailable until")
    assert "make page" in told.stderr
    assert (checkout.root / "page/.fetch-failed").read_text() == f"{why}\n"
    told = checkout.fetch()
    assert (told.returncode, told.stderr.count("\n")) == (1, 1)
    assert told.stderr.startswith(f"error: live map: {why}; check the network")
    checkout.program("npm", NPM)
    assert checkout.fetch().returncode == 0
    assert not (checkout.root / "page/.fetch-failed").exists()


@pytest.mark.parametrize("there", [False, True])
def test_a_wheel_has_the_libraries_or_a_warning(
    there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "page", tmp_path / "page")
    (tmp_path / "src/placewire").mkdir(parents=True)
    (tmp_path / "src/placewire/__init__.py").touch()
    files = {f"vendor/{file}" for file in LIBRARIES.values()} if there else set()
    for file in files:
        path = tmp_path / "src/placewire/serve/page" / file
        path.parent.mkdir(parents=True)
        path.touch()
    [wheel] = WheelBuilder(str(tmp_path)).build(directory=str(tmp_path / "dist"))
    with ZipFile(wheel) as packed:
        names = packed.namelist()
    assert {f"placewire/serve/page/{file}" for file in files} <= set(names)
    assert any(name.endswith("licenses/NOTICE") for name in names)
    told = capsys.readouterr()
    assert ("run `make page`" in told.out + told.err) == (not there)
