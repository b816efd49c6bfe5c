"""Whether the libraries of the live map are there, which `make setup` fetches with npm."""

from __future__ import annotations

import pytest

from checkout import ROOT
from placewire.serve.http.live_map import missing_libraries

FAILED = ROOT / "page/.fetch-failed"


def need_libraries() -> None:
    """Require the libraries, or skip the caller if `make setup` could not fetch them."""
    if FAILED.is_file():
        pytest.skip(f"live map: {FAILED.read_text().strip()}", allow_module_level=True)
    if missing := missing_libraries():
        pytest.fail(f"{', '.join(missing)}: missing; run `make page`")
