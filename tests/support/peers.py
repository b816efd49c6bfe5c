"""Packages that only `make bench` and `make test-rest` install: the extra `bench`."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from profiles import PROFILE


def need_peers(*names: str) -> None:
    """Skip the caller, a test or a module, without these packages; fail in `make test-rest`."""
    missing = [name for name in names if find_spec(name) is None]
    if not missing:
        return
    why = f"{', '.join(missing)}: not installed; run `make peers`"
    if PROFILE == "thorough":
        pytest.fail(why)
    pytest.skip(why, allow_module_level=True)
