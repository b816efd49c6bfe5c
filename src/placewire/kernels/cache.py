"""Cache compiled kernels by their content, in a directory that can be copied, shared or shipped.

A file's name is a hash of all that the machine code depends on: the bytecode of the kernel and of
every function that it calls, the constants and named tuples they use, the argument types, the
compiler's versions and the processor. An unchanged kernel is never recompiled, wherever its source
is; a changed kernel never loads outdated code.

Kernels are looked up in the directory that `PLACEWIRE_KERNELS` names, by default the user's cache,
then among the kernels of the wheel, which are compiled for levels of x86-64.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import platform
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from numba.core.types.containers import BaseNamedTuple, BaseTuple

SHIPPED = Path(__file__).parent / "compiled"
SUFFIX = ".kernel"
VARIABLE = "PLACEWIRE_KERNELS"
FORMAT = 1
LOCKED_FOR_S = 60.0  # longer than any kernel takes to compile
# The processor features of each level of x86-64, highest level first.
V2 = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf")
V3 = (*V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
LEVELS = {"x86-64-v3": V3, "x86-64-v2": V2}


def cache_directory() -> Path:
    """Return the directory for kernels that are compiled here; it may not exist yet."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "placewire" / "kernels"


@cache
def host_targets() -> tuple[str, ...]:
    """Return the targets whose code runs on this processor: its own, then levels of x86-64."""
    own = numba.config.CPU_NAME or llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features()
    if numba.config.CPU_NAME in LEVELS:
        return (own,)
    flags = f"{own}:{features.flatten()}"
    levels = [
        level
        for level, needed in LEVELS.items()
        if platform.machine() in ("x86_64", "AMD64") and all(map(features.get, needed))
    ]
    return (flags, *levels)


Watch = Callable[[str], None]
_watches: list[Watch] = []


@contextlib.contextmanager
def watching_compiler(watch: Watch) -> Iterator[None]:
    """Call a function with the name of each kernel that this process compiles meanwhile."""
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


class KernelCache(_Cache):  # type: ignore[misc]
    """The cache of one kernel, in the form that its dispatcher uses."""

    made: ClassVar[list[KernelCache]] = []

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        self.options = options
        self.enabled = True
        self.made.append(self)

    @property
    def cache_path(self) -> str:
        return str(cache_directory())

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False

    def flush(self) -> None:
        """Do nothing: entries found by content are never stale."""

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return the compiled kernel for a signature; None if it must be compiled."""
        if not self.enabled:
            return None
        target_context.refresh()
        payload = self._find(sig)
        if payload is None and not claim(cache_directory() / self._name(sig, host_targets()[0])):
            payload = self._find(sig)  # another process has compiled it in the meantime
        if payload is not None:
            return CompileResult._rebuild(target_context, *payload)
        for watch in _watches:
            watch(self.function.__name__)
        return None

    def _find(self, sig: Any) -> tuple[Any, ...] | None:
        for target in host_targets():
            name = self._name(sig, target)
            for directory in (cache_directory(), SHIPPED):
                payload = read_payload(directory / name)
                if payload is not None:
                    return payload
        return None

    def save_overload(self, sig: Any, data: CompileResult) -> None:
        """Store a compiled kernel; if no directory is writable, it lasts for this process only."""
        if not self.enabled:
            return
        path = cache_directory() / self._name(sig, host_targets()[0])
        if not data.lifted and not data.library.has_dynamic_globals:
            write_payload(path, data._reduce())
        with contextlib.suppress(OSError):
            lock_of(path).unlink()

    def _name(self, sig: Any, target: str) -> str:
        options = repr(sorted(self.options.items()))
        parts = (content_of(self.function), options, signature_content(sig), target)
        digest = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
        return f"{self.function.__name__}-{digest}{SUFFIX}"


def lock_of(path: Path) -> Path:
    """Return the lock file that names the process compiling a kernel."""
    return path.with_suffix(".lock")


def claim(path: Path) -> bool:
    """Return true if this process must compile a kernel; false once another process has done so.

    Without the lock, processes that start together would all compile the same kernels. A kernel
    waits only for kernels that it calls, so processes cannot deadlock.
    """
    lock = lock_of(path)
    until = time.monotonic() + LOCKED_FOR_S
    while time.monotonic() < until:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            with open(lock, "x") as file:
                file.write(f"{platform.node()} {os.getpid()}")
            return True
        except FileExistsError:
            if path.exists():
                return False
            if not lock_is_held(lock):
                with contextlib.suppress(OSError):
                    lock.unlink()
            time.sleep(0.01)
        except OSError:
            return True  # no directory to share
    return True


def lock_is_held(lock: Path) -> bool:
    """Return true if another process may still be compiling the locked kernel."""
    try:
        node, _, process = lock.read_text().partition(" ")
        if time.time() - lock.stat().st_mtime > LOCKED_FOR_S:
            return False
        if node == platform.node() and process:
            os.kill(int(process), 0)
            return int(process) != os.getpid()
    except (ProcessLookupError, FileNotFoundError):
        return False
    except (OSError, ValueError):
        return True
    return True


def read_payload(path: Path) -> tuple[Any, ...] | None:
    """Read a compiled kernel; None if it is missing or truncated."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, body = data[:16], data[16:]
    if hashlib.blake2b(body, digest_size=16).digest() != digest:
        return None
    payload: tuple[Any, ...] = pickle.loads(body)
    return payload


def write_payload(path: Path, payload: tuple[Any, ...]) -> None:
    """Write a compiled kernel atomically."""
    body = dumps(payload)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(hashlib.blake2b(body, digest_size=16).digest() + body)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()


# The content of a kernel.


@cache
def compiler_content() -> str:
    """Return what machine code depends on besides the source."""
    versions = numba.__version__, llvmlite.__version__, np.__version__
    return f"{FORMAT} {sys.version_info[:2]} {versions} {platform.machine()} {sys.platform}"


@cache
def content_of(function: FunctionType) -> str:
    """Return the hash of a kernel and of everything it uses."""
    parts: list[str] = [compiler_content()]
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        parts.append(f"{one.__module__}.{one.__qualname__} {one.__defaults__!r}")
        parts.extend(code_content(one.__code__, one.__doc__))
        for name, value in used_values(one):
            if isinstance(value, Dispatcher):
                parts.append(f"{name}: kernel {value.targetoptions!r}")
                waiting.append(value.py_func)
            elif isinstance(value, FunctionType) and value.__module__.startswith("placewire"):
                waiting.append(value)
            else:
                parts.append(f"{name}: {value_content(value)}")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def code_content(code: CodeType, doc: str | None = None) -> Iterator[str]:
    """Yield what a code object does, independent of its file, lines and docstring."""
    consts = [None if doc is not None and const == doc else const for const in code.co_consts]
    plain = [const for const in consts if not isinstance(const, CodeType)]
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {plain!r} {code.co_freevars}"
    for const in consts:
        if isinstance(const, CodeType):
            yield from code_content(const)


def used_values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the global and enclosed values that a function uses, ordered by name."""
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
    for name in sorted(names & function.__globals__.keys()):
        yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def value_content(value: Any) -> str:
    """Return what kernels can see of a constant, a named tuple, a module or another function."""
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, np.generic):
        return f"{value.dtype.str} {value!r}"
    if isinstance(value, tuple):
        items = " ".join(map(value_content, value))
        return f"{type(value).__qualname__}({items})"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', ())}"
    if isinstance(value, FunctionType):
        return f"function {value.__module__}.{value.__qualname__}"
    return f"{type(value).__qualname__} {value!r}"


def signature_content(sig: Any) -> str:
    """Return the argument types of a signature, with the fields of their named tuples."""
    args = getattr(sig, "args", sig)
    return " ".join(map(type_content, args))


def type_content(kind: Any) -> str:
    """Return a type, with the fields of a named tuple."""
    if isinstance(kind, BaseNamedTuple):
        fields = zip(kind.fields, kind, strict=True)
        inner = " ".join(f"{name}={type_content(one)}" for name, one in fields)
        return f"{kind.instance_class.__qualname__}({inner})"
    if isinstance(kind, BaseTuple):
        return f"({' '.join(map(type_content, kind))})"
    return str(kind)
