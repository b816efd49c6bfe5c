"""Numbers on the command line, checked here so that an error says what was got."""

from __future__ import annotations

import math
from typing import Any

import typer

from placewire.model.errors import Unusable


def number(
    kind: type[int] | type[float],
    help: str,
    least: float,
    most: float = math.inf,
    name: str | None = None,
    **more: Any,
) -> Any:
    """An option that is a number of a kind, from `least` to `most`; its own name unless given."""
    named = "a whole number" if kind is int else "a number"
    span = f"{least} or more" if most == math.inf else f"{least}..{most}"

    def check(param: typer.CallbackParam, value: Any) -> Any:
        if value is None:
            return None
        try:
            given = kind(value)
        except ValueError:
            given = kind(least - 1)
        if not least <= given <= most:
            raise Unusable(f"{param.opts[0]}: must be {named}, {span}, got {value}")
        return given

    names = () if name is None else (name,)
    return typer.Option(*names, help=help, parser=str, callback=check, metavar=span, **more)
