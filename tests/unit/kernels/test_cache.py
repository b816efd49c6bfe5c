"""Compiled kernels are found by their content, wherever their source is."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from placewire.kernels.cache import VARIABLE, claim, content_of, lock_of

SOURCE = '''
from typing import NamedTuple
import numpy as np
from placewire.kernels.jit import kernel, subkernel

FACTOR = 3

class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray

@subkernel
def scaled(value: int) -> int:
    """Multiply."""
    return value * FACTOR

@kernel
def sum_scaled(pair):
    total = 0
    for value in pair.left:
        total += scaled(value)
    return total - pair.right[0]

@kernel
def first_of(values):
    return values[0]
'''


@pytest.fixture
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a source and calls its kernels; gives results and misses."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kernels"))
    made = iter(range(100))

    def load(source: str) -> tuple[int, dict[str, int]]:
        path = tmp_path / f"copy{next(made)}" / "sample.py"
        path.parent.mkdir()
        path.write_text(source)
        module = import_file(path)
        values = np.arange(5)
        result = module.sum_scaled(module.Pair(values, values + 1))
        module.first_of(values)
        names = ("sum_scaled", "scaled", "first_of")
        misses = {n: sum(getattr(module, n).stats.cache_misses.values()) for n in names}
        return int(result), misses

    return load


def import_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("sample", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_copy_of_the_source_finds_its_kernels(loads: Any) -> None:
    assert loads(SOURCE) == (29, {"sum_scaled": 1, "scaled": 1, "first_of": 1})
    assert loads(SOURCE) == (29, {"sum_scaled": 0, "scaled": 0, "first_of": 0})
    moved = "# a comment\n\n" + SOURCE.replace("Multiply", "Multiply a value")
    assert loads(moved) == (29, {"sum_scaled": 0, "scaled": 0, "first_of": 0})


@pytest.mark.parametrize(
    ("old", "new", "result", "misses"),
    [
        ("value * FACTOR", "value + FACTOR", 24, {"sum_scaled": 1, "scaled": 1, "first_of": 0}),
        ("FACTOR = 3", "FACTOR = 4", 39, {"sum_scaled": 1, "scaled": 1, "first_of": 0}),
        ("total - pair", "total + pair", 31, {"sum_scaled": 1, "scaled": 0, "first_of": 0}),
        ("values[0]", "values[1]", 29, {"sum_scaled": 0, "scaled": 0, "first_of": 1}),
    ],
)
def test_a_change_recompiles_what_uses_it(
    loads: Any, old: str, new: str, result: int, misses: dict[str, int]
) -> None:
    loads(SOURCE)
    assert loads(SOURCE.replace(old, new)) == (result, misses)
    assert loads(SOURCE)[1] == {"sum_scaled": 0, "scaled": 0, "first_of": 0}


def test_fields_that_change_places_recompile(loads: Any) -> None:
    loads(SOURCE)
    left, right = "    left: np.ndarray\n", "    right: np.ndarray\n"
    result, misses = loads(SOURCE.replace(left + right, right + left))
    # The pair is made by position, so the kernel now sums the other array.
    assert (result, misses["sum_scaled"], misses["scaled"]) == (45, 1, 0)


def test_a_damaged_file_is_compiled_again(loads: Any, tmp_path: Path) -> None:
    loads(SOURCE)
    for n, path in enumerate(sorted((tmp_path / "kernels").iterdir())):
        data = bytearray(path.read_bytes())
        if n % 2:
            del data[len(data) // 2 :]
        else:
            data[-1] ^= 1
        path.write_bytes(data)
    assert loads(SOURCE)[0] == 29
    assert loads(SOURCE)[1] == {"sum_scaled": 0, "scaled": 0, "first_of": 0}


def test_kernels_run_without_a_directory_to_write_to(
    loads: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.setenv(VARIABLE, str(file / "inside"))
    for _ in range(2):
        assert loads(SOURCE) == (29, {"sum_scaled": 1, "scaled": 1, "first_of": 1})


def test_content_covers_callees_of_callees() -> None:
    from placewire.kernels.text.siphash import bytes_hash, rotated, slices_hash

    contents = {content_of(k.py_func) for k in (bytes_hash, rotated, slices_hash)}  # type: ignore[attr-defined]
    assert len(contents) == 3


def test_one_of_two_processes_compiles(tmp_path: Path) -> None:
    path = tmp_path / "k.kernel"
    waiting = (
        "import sys; from pathlib import Path; from placewire.kernels.cache import claim;"
        f" sys.exit(claim(Path({str(path)!r})))"
    )
    assert claim(path)
    with subprocess.Popen([sys.executable, "-c", waiting]) as other:
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(3)
        path.write_bytes(b"")
        assert other.wait(60) == 0  # it need not compile


@pytest.mark.parametrize("owner", ["", "999999999", "elsewhere"])
def test_a_lock_of_a_dead_process_is_taken(tmp_path: Path, owner: str) -> None:
    path = tmp_path / "k.kernel"
    lock = lock_of(path)
    lock.write_text(f"{'gone' if owner == 'elsewhere' else platform.node()} {owner}")
    if owner != "999999999":
        os.utime(lock, (0, 0))  # too old to be held
    assert claim(path)
    assert lock.read_text() == f"{platform.node()} {os.getpid()}"
