"""The files of the live map: what is vendored is what is locked, its places are the city's."""

from __future__ import annotations

import json

from checkout import ROOT
from placewire.demo.places import places

HERE = ROOT
PAGE = HERE / "src/placewire/serve/page"


def test_the_places_are_those_of_the_city() -> None:
    named = json.loads((PAGE / "geo/places.json").read_text())["features"]
    assert {place["properties"]["name"] for place in named} == {
        place.name for place in (*places().cities, *places().hot_spots)
    }


def test_what_is_vendored_is_what_is_locked() -> None:
    locked = json.loads((HERE / "page/package-lock.json").read_text())["packages"]
    said = (PAGE / "vendor/README.md").read_text()
    for name in ("maplibre-gl", "uplot", "world-atlas"):
        assert f"| {name} | {locked[f'node_modules/{name}']['version']} |" in said
        assert (PAGE / "vendor" / name / "LICENSE.txt").is_file()
    assert not any("resolved" in package for package in locked.values())
