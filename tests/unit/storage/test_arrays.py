"""Array files: round trips and damaged files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

from placewire.model.errors import Unusable
from placewire.storage.arrays import (
    MAGIC,
    map_arrays,
    open_arrays,
    pack_arrays,
    unpack_arrays,
    write_arrays,
)
from profiles import examples

# --- array files ---

DTYPES = [
    np.uint8,
    np.int8,
    np.int16,
    np.uint32,
    np.int32,
    np.uint64,
    np.int64,
    np.float64,
    np.bool_,
]
arrays_to_keep = st.dictionaries(
    st.text(min_size=1, max_size=12),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: st_np.arrays(dtype, st_np.array_shapes(min_dims=1, max_dims=2, min_side=0))
    ),
    max_size=6,
)
facts_to_keep = st.dictionaries(st.text(max_size=5), st.integers(-(2**60), 2**60), max_size=3)


@settings(max_examples=examples(80))
@given(arrays_to_keep, facts_to_keep)
def test_arrays_come_back(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Any], facts: dict[str, int]
) -> None:
    path = tmp_path_factory.mktemp("arrays") / "a.plw"
    assert write_arrays(path, arrays, facts) == path.stat().st_size
    packed = pack_arrays(arrays, facts)
    assert packed == path.read_bytes()
    for read in (map_arrays(path), open_arrays(path), unpack_arrays(packed)):
        assert read.facts == facts
        assert list(read.arrays) == list(arrays)
        for name, array in arrays.items():
            assert read.arrays[name].dtype == array.dtype
            assert read.arrays[name].shape == array.shape
            assert np.array_equal(read.arrays[name], array, equal_nan=array.dtype.kind == "f")


def test_arrays_that_are_not_contiguous_come_back(tmp_path: Path) -> None:
    square = np.arange(100.0).reshape(10, 10)
    arrays = {
        "t": square.T,
        "step": square[::2, ::3],
        "back": np.arange(10)[::-1],
        "none": square[:0],
    }
    write_arrays(tmp_path / "a.plw", arrays)
    for name, array in map_arrays(tmp_path / "a.plw").arrays.items():
        assert np.array_equal(array, arrays[name])


def test_large_and_small_arrays_stay_in_order(tmp_path: Path) -> None:
    arrays = {
        f"a{n}": np.full(size, n, np.uint8)
        for n, size in enumerate((1, 70_000, 0, 65_535, 65_536, 3))
    }
    write_arrays(tmp_path / "a.plw", arrays)
    for name, array in map_arrays(tmp_path / "a.plw").arrays.items():
        assert np.array_equal(array, arrays[name])
        assert array.size == 0 or array.ctypes.data % 64 == 0


def test_mapped_arrays_cannot_be_written(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.plw", {"a": np.arange(3)})
    mapped = map_arrays(tmp_path / "a.plw").arrays["a"]
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 7


def test_a_file_is_written_once(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.plw", {})
    with pytest.raises(FileExistsError):
        write_arrays(tmp_path / "a.plw", {})


@pytest.mark.parametrize(
    "content",
    [b"", b"short", b"x" * 100, MAGIC + (2).to_bytes(4, "little") + bytes(100), MAGIC[::-1] * 20],
)
def test_what_is_no_array_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.plw"
    path.write_bytes(content)
    with pytest.raises(Unusable, match="is not an array file"):
        map_arrays(path)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.plw"
    write_arrays(path, {"a": np.arange(1000)})
    for length in (5_000, 400, 100, 30):
        path.write_bytes(path.read_bytes()[:length])
        with pytest.raises(Unusable):
            map_arrays(path)


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"gone\.plw"):
        map_arrays(tmp_path / "gone.plw")
