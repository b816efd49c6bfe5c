"""SipHash against its definition and the interpreter's own hash."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewire.kernels.text.siphash import slices_hash
from siphash import K0, K1, MASK, siphash, siphash13

# SipHash ------------------------------------------------------------------------------------------

PUBLISHED_24 = [
    "310e0edd47db6f72",
    "fd67dc93c539f874",
    "5a4fa9d909806c0d",
    "2d7efbd796666785",
    "b7877127e09427cf",
    "8da699cd64557618",
    "cee3fe586e46c9cb",
    "37d1018bf50002ab",
    "6224939a79f5f593",
    "b0e4a90bdf82009e",
    "f3b9dd94c5bb5d7a",
    "a7ad6b22462fb3f4",
    "fbe50e86bc8f1e75",
    "903d84c02756ea14",
    "eef27a8e90ca23f7",
    "e545be4961ca29a1",
]


@pytest.mark.parametrize(("length", "published"), list(enumerate(PUBLISHED_24)))
def test_reference_gives_the_published_vectors(length: int, published: str) -> None:
    got = siphash(bytes(range(length)), K0, K1, 2, 4)
    assert got.to_bytes(8, "little").hex() == published


def test_hash_equals_the_interpreters_own() -> None:
    if sys.hash_info.algorithm != "siphash13" or sys.hash_info.cutoff:
        pytest.skip("this interpreter hashes otherwise")
    program = "print(*(hash(bytes(range(1, n))) for n in range(2, 60)))"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True
    ).stdout
    expected = [int(number) & MASK for number in printed.split()]
    assert [siphash13(bytes(range(1, n)), 0, 0) for n in range(2, 60)] == expected


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, MASK), st.integers(0, MASK))
def test_slices_hash_equals_the_reference(parts: list[bytes], k0: int, k1: int) -> None:
    ends = np.cumsum([len(part) for part in parts]).astype(np.int64)
    starts = ends - np.array([len(part) for part in parts], np.int64)
    got = slices_hash(
        np.frombuffer(b"".join(parts), np.uint8), starts, ends, np.uint64(k0), np.uint64(k1)
    )
    assert got.tolist() == [siphash13(part, k0, k1) for part in parts]
