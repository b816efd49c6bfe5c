"""The one home of the compiler: `kernel` and `subkernel` compile, and nothing else imports numba.

Kernels are compiled without fast-math, because results must be the same to the last bit on every
machine, and without fused multiply-add for the same reason (LLVM fuses only under fast-math).
They release the GIL and are cached on disk, so that one process compiles and the others load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])


def read_only(array: Any) -> NDArray[Any]:
    """The array as one that cannot be written.

    To the compiler arrays that are mapped from a file and arrays made here are different types;
    seen through this they are one, and a kernel is compiled once.
    """
    view: NDArray[Any] = array.view()
    view.flags.writeable = False
    return view


def kernel(function: F) -> F:
    """Compile `function` (arrays and scalars in, arrays and scalars out)."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def subkernel(function: F) -> F:
    """Compile a small function that kernels call in their inner loops.

    `inline="never"` keeps numba from typing it again in each caller. LLVM inlines it all the same.
    """
    return cast(F, numba.njit(cache=True, nogil=True, inline="never")(function))
