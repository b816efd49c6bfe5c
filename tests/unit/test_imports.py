"""Unit tests load no Spark: each package's tests start in seconds."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import placewire
from checkout import ROOT

COLLECT = """
import sys

import pytest

sys.modules["pyspark"] = None  # an import fails where it stands
options = ["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
ended = pytest.main([*options, *sys.argv[1:]])
print("ended", int(ended))
"""


def test_tests_without_spark_do_not_import_it() -> None:
    tiers = ["tests/unit", "tests/law", "tests/service"]
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *tiers],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "ended 0", done.stdout[-4000:] + done.stderr[-2000:]


def test_every_public_name_has_a_home() -> None:
    """Homes are looked up without importing them: some need Spark."""
    assert set(placewire.__all__) == set(placewire._HOMES)
    for name, home in placewire._HOMES.items():
        spec = find_spec(home)
        assert spec is not None
        assert spec.origin is not None
        assert name in Path(spec.origin).read_text("utf-8")
