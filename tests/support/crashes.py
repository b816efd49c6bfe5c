"""Kill a process at a chosen call, before or after it."""

from __future__ import annotations

import importlib
import os
import signal
from typing import Any, NamedTuple

# Imports everything once and then forks a process for every command it is asked to run: loading
# the compiled kernels takes seconds, and these tests run some eighty commands. In a process that is
# to be killed one function is wrapped: at its Nth call it kills the process before it does
# anything, after it has done it, or (for what yields parts) when the first part is out.
STARTER = """
import importlib, json, os, signal, sys
import placewire.cli.replay
from placewire.cli.main import main
from placewire.warm import warm_kernels

# A shell that runs tests in the background lets its children ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def set_trap(module, name, when, count):
    owner = importlib.import_module(module)
    *path, attribute = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    real = getattr(owner, attribute)
    left = count

    def wrapped(*arguments, **named):
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            die()
        result = real(*arguments, **named)
        if left == 0:
            die()
        return result

    def half(*arguments, **named):
        nonlocal left
        left -= 1
        for part in real(*arguments, **named):
            yield part
            if left == 0:
                die()

    setattr(owner, attribute, half if when == "half" else wrapped)


def run(words):
    sys.argv = ["placewire", *words]
    try:
        main()
    except SystemExit as ended:
        return ended.code or 0


def run_forked(killed, words, out, err):
    process = os.fork()
    if process == 0:
        for path, stream in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        code = 70
        try:
            if killed[0]:
                set_trap(*killed)
            code = run(words)
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    if sys.argv[1:]:
        # Warming runs batches of its own, and the traps must not count them.
        importlib.import_module("placewire.cli.startup").warm_kernels = lambda *_: None
        killed = json.loads(sys.argv[1])
        if killed[0]:
            set_trap(*killed)
        sys.exit(run(sys.argv[2:]))
    for plan in ("shared", "grid", "scan"):
        warm_kernels(plan)
    for line in sys.stdin:
        print(json.dumps(run_forked(*json.loads(line))), flush=True)
"""


class Killed(NamedTuple):
    """Where the process kills itself; the empty module lets it live."""

    module: str = ""
    name: str = ""
    when: str = ""
    count: int = 0


def kill_at(module: str, name: str, when: str, count: int) -> None:
    """Kill this process at the so manieth call of a function, or of a class's method."""
    home = importlib.import_module(module)
    if "." in name:
        of, name = name.split(".")
        home = getattr(home, of)
    original = getattr(home, name)
    left = [count]

    def dying(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = original(*arguments, **named)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(home, name, dying)
