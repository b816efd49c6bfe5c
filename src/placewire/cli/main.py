"""Run the `placewire` command line and turn its errors into one line on standard error."""

from __future__ import annotations

import sys
from typing import cast

import typer

# Help shows commands and panels in the order in which they are declared.
import placewire.cli.service_commands  # isort: skip
import placewire.cli.commands  # noqa: F401  # isort: skip
from placewire.cli.options import app
from placewire.model.errors import Unusable

# Typer's base class of usage errors, which it does not export: it bundles its own click.
UsageProblem = cast(type[typer.BadParameter], typer.BadParameter.__mro__[2])

# What `serve` and `demo` import; the packages of other extras are checked where they are used.
SERVER_PACKAGES = {"httpcore", "httpx", "starlette", "uvicorn", "websockets"}

UNUSABLE = 2
NEEDS_KEY, KEY_HINT = 401, "; set --key or PLACEWIRE_KEY"
INTERRUPTED = 130  # the exit code that Typer gives Ctrl-C


def main() -> None:
    """Run the command line; print one line and exit with code 2 for anything unusable."""
    try:
        code = app(standalone_mode=False)
    except (Unusable, OSError) as error:
        # File names and messages of the system can contain line breaks.
        hint = KEY_HINT if getattr(error, "status", 0) == NEEDS_KEY else ""
        print("placewire: " + " ".join(str(error).split()) + hint, file=sys.stderr)
        sys.exit(UNUSABLE)
    except ModuleNotFoundError as error:
        if error.name not in SERVER_PACKAGES:
            raise
        how = f"this command needs {error.name}: pip install 'placewire[serve]'"
        print(f"placewire: {how}", file=sys.stderr)
        sys.exit(UNUSABLE)
    except UsageProblem as error:
        print(f"placewire: {error.format_message()}", file=sys.stderr)
        sys.exit(UNUSABLE)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    if code == INTERRUPTED:
        print("placewire: interrupted", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
