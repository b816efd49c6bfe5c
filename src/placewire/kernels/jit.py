"""The decorators that compile kernels; only they and the kernel cache import numba.

Kernels are compiled without fast-math, because results must be the same to the last bit on every
machine, and without fused multiply-add for the same reason (LLVM fuses only under fast-math).
They release the GIL and are cached by their content, so that one process compiles and others load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_type_hints

import numba
import numpy as np
from numpy.typing import NDArray

from placewire.kernels.cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=tuple[Any, ...])


def read_only(array: Any) -> NDArray[Any]:
    """Return a read-only view of the array.

    The compiler sees arrays mapped from a file and arrays made here as different types. A read-only
    view makes them one type, so a kernel is compiled once.
    """
    view: NDArray[Any] = array.view()
    view.flags.writeable = False
    return view


def freeze(structure: type[T], columns: Iterable[Any]) -> T:
    """Make a named tuple of arrays that kernels read: contiguous, read-only, of declared dtypes.

    Constructs every such structure, so that a kernel that takes it has one signature.
    """
    return structure(*map(freeze_column, columns, column_dtypes(structure)))


def freeze_column(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the column as a contiguous, read-only array of this dtype, copied only if needed."""
    array = np.ascontiguousarray(column, dtype)
    return read_only(array) if array.flags.writeable else array


@cache
def column_dtypes(structure: type) -> tuple[np.dtype[Any], ...]:
    """Return the dtype of each column, from annotations such as `NDArray[np.int64]`."""
    return tuple(
        np.dtype(get_args(get_args(annotation)[1])[0])
        for annotation in get_type_hints(structure).values()
    )


# For functions that only kernels call and that neither create nor return arrays.
CALLED_BY_KERNELS = {"_nrt": False, "no_cpython_wrapper": True}


def kernel(function: F) -> F:
    """Compile `function` (arrays and scalars in, arrays and scalars out)."""
    return compile_lazily(function)


def subkernel(function: F) -> F:
    """Compile a small function that kernels call in their inner loops.

    It neither creates nor returns arrays, so it needs no reference counts. Counting takes an atomic
    operation for each array of each call; without it texts are analyzed in 3/4 of the time.
    `inline="never"` keeps numba from typing the function again in each caller. LLVM inlines it
    anyway.
    """
    return hide_from_python(compile_lazily(function, inline="never", **CALLED_BY_KERNELS))


def inlined_subkernel(function: F) -> F:
    """Compile a subkernel that LLVM must inline.

    For functions whose call costs more than their body: an array is passed as seven values. Without
    this, LLVM decides by size, and scoring `relevant` candidates takes 25% longer.
    """
    options = {"inline": "never", "forceinline": True, **CALLED_BY_KERNELS}
    return hide_from_python(compile_lazily(function, **options))


def hide_from_python(function: F) -> F:
    """Reject calls of a subkernel by Python, with a message instead of a crash.

    A subkernel is compiled without the code that converts Python's arguments, which for small
    functions takes longer to compile than the function.
    """
    dispatcher: Any = function
    python = dispatcher.py_func

    def add_overload(result: Any) -> None:
        dispatcher.overloads[tuple(result.signature.args)] = result

    def reject(*args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{python.__name__}: only kernels call this; use {python.__name__}.py_func")

    dispatcher.add_overload = add_overload
    dispatcher._compile_for_args = reject
    return function


def array_subkernel(function: F) -> F:
    """Compile a subkernel that creates or returns arrays."""
    return compile_lazily(function, inline="never")


def compile_lazily(function: F, **options: Any) -> F:
    """Return a function that is compiled, or read from the cache, when it is first called."""
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    dispatcher._cache = KernelCache(function, dispatcher.targetoptions)
    return cast(F, dispatcher)
