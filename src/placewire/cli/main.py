"""The command line: what was typed goes to a command, what goes wrong becomes one clear line."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import cast

import typer

from placewire.cli.app import app
from placewire.model.errors import Unusable

# In the order in which help shows them.
for group in ("serving", "wire", "keys", "logs", "streams", "imports", "looking", "plans", "bench"):
    import_module(f"placewire.cli.commands.{group}")

# What Typer raises for anything mistyped; it carries its own click and does not name this base.
Mistyped = cast(type[typer.BadParameter], typer.BadParameter.__mro__[2])

UNUSABLE = 2
NEEDS_KEY, KEY_HINT = 401, "; --key or PLACEWIRE_KEY gives one"
INTERRUPTED = 130  # what Typer makes of Ctrl-C


def main() -> None:
    """Run the command line: one clear line and exit code 2 for anything unusable."""
    try:
        code = app(standalone_mode=False)
    except (Unusable, OSError) as error:
        # One line, whatever a file name or a system's message brings along.
        hint = KEY_HINT if getattr(error, "status", 0) == NEEDS_KEY else ""
        print("placewire: " + " ".join(str(error).split()) + hint, file=sys.stderr)
        sys.exit(UNUSABLE)
    except Mistyped as error:
        print(f"placewire: {error.format_message()}", file=sys.stderr)
        sys.exit(UNUSABLE)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    if code == INTERRUPTED:
        print("placewire: interrupted", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
