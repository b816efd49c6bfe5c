"""`placewire tail`: follow results, in words or as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from placewire.cli.connection import CommandTarget, open_reader
from placewire.cli.format import (
    format_distance,
    format_point,
    format_score,
    format_terms,
    quote_text,
)
from placewire.model.errors import Unusable


class TailOptions(NamedTuple):
    """The options of the command."""

    ids: tuple[str, ...]
    target: CommandTarget
    after: str
    seconds: float | None
    most: int | None
    json: bool


def run_tail(options: TailOptions) -> None:
    """Print results until the limit of time or count, or Ctrl-C; raises Unusable."""
    after = read_after(options.after)
    console = Console(highlight=False, soft_wrap=True)
    with open_reader(options.target) as reader:
        left = options.most
        if left == 0:
            return
        for got in reader.tail(
            *options.ids, after=after, objects=not options.json, seconds=options.seconds
        ):
            if options.json:
                print(json.dumps(got, ensure_ascii=False), flush=True)
            else:
                console.print(format_result(got, alone=len(options.ids) == 1))
                sys.stdout.flush()
            left = None if left is None else left - 1
            if left == 0:
                return


def read_after(text: str) -> int | str:
    """Read a number or `latest`; raises Unusable."""
    if text == "latest":
        return text
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Unusable(f"after: must be a number or 'latest', got {text!r}")
    return int(text)


def format_result(got: dict[str, Any], alone: bool) -> Text:
    """Format a result on one line; `alone` omits the id of its subscription."""
    result, objects = got["result"], got.get("objects", {})
    line = Text()
    if not alone:
        line.append(f"{got['subscription']} ", "cyan")
    line.append(f"{got['number']} ", "dim")
    if result["type"] == "report":
        return line.append(f"at {result['at']}: {format_terms(result['terms'])}")
    if result["type"] == "match":
        return line.append(format_object(result["object"], objects))
    for number, named in enumerate(result["add"]):
        line.append("; " if number else "")
        scored = "score" in named
        if scored:
            measure = f"score {format_score(named['score'])}"
        else:
            measure = format_distance(named["distance_m"])
        line.append(f"{measure}: ", "bold").append(format_object(named["object"], objects))
    if result["drop"]:
        gone = ", ".join(named["object"] for named in result["drop"])
        line.append("; " if result["add"] else "").append(f"gone: {gone}", "dim")
    return line


def format_object(name: str, objects: dict[str, Any]) -> str:
    """Format an object with its text and position if they are known, else its id."""
    known = objects.get(name)
    if known is None:
        return name
    return f"{quote_text(known['text'])} at {format_point(known['lon'], known['lat'])} ({name})"
