"""The root of the checkout, where docs and `pyproject.toml` are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]
