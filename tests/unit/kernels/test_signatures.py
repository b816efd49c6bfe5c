"""Kernels are compiled for one signature each, and subkernels return no arrays."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own: other tests call kernels with arrays of other types.
CHECK = """
import sys
from numba.core import types
from numba.core.dispatcher import Dispatcher
from placewire.warm import warm_kernels

def has_array(kind):
    if isinstance(kind, types.BaseTuple):
        return any(map(has_array, kind))
    return isinstance(kind, types.Array)

warm_kernels()
modules = [module for name, module in sys.modules.items() if name.startswith("placewire.")]
found = {id(d): d for m in modules for d in vars(m).values() if isinstance(d, Dispatcher)}
kernels = [d for d in found.values() if d.targetoptions.get("inline") != "never"]
assert sum(len(d.signatures) for d in kernels) > 50
for d in kernels:
    assert len(d.signatures) <= 1, (d, d.signatures)
for d in found.values():
    for signature in d.nopython_signatures:
        counted = d.targetoptions.get("_nrt", True)
        assert counted or not has_array(signature.return_type), (d, signature)
"""


def test_kernels_have_one_signature() -> None:
    command = [sys.executable, "-c", CHECK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
