"""`placewire tail`: results as they come, in words or as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from placewire.cli.targets import Target, open_reader
from placewire.cli.words import counted, far, measured, place, quoted
from placewire.model.errors import Unusable


class TailOptions(NamedTuple):
    """What the user typed."""

    ids: tuple[str, ...]
    target: Target
    after: str
    seconds: float | None
    most: int | None
    json: bool


def run_tail(options: TailOptions) -> None:
    """Print results until it is time, or somebody says stop; raises Unusable."""
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
                console.print(line_of(got, alone=len(options.ids) == 1))
                sys.stdout.flush()
            left = None if left is None else left - 1
            if left == 0:
                return


def read_after(text: str) -> int | str:
    """A number, or `latest`; raises Unusable."""
    if text == "latest":
        return text
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Unusable(f"after: must be a number or 'latest', got {text!r}")
    return int(text)


def line_of(got: dict[str, Any], alone: bool) -> Text:
    """A result as a person says it; `alone` with others of its subscription only."""
    result, objects = got["result"], got.get("objects", {})
    line = Text()
    if not alone:
        line.append(f"{got['subscription']} ", "cyan")
    line.append(f"{got['number']} ", "dim")
    if result["type"] == "report":
        return line.append(f"at {result['at']}: {counted(result['terms'])}")
    if result["type"] == "match":
        return line.append(object_words(result["object"], objects))
    for number, named in enumerate(result["add"]):
        line.append("; " if number else "")
        scored = "score" in named
        why = f"score {measured(named['score'], True)}" if scored else far(named["distance_m"])
        line.append(f"{why}: ", "bold").append(object_words(named["object"], objects))
    if result["drop"]:
        gone = ", ".join(named["object"] for named in result["drop"])
        line.append("; " if result["add"] else "").append(f"gone: {gone}", "dim")
    return line


def object_words(name: str, objects: dict[str, Any]) -> str:
    """What an object says and where it is, if that is known."""
    known = objects.get(name)
    if known is None:
        return name
    return f"{quoted(known['text'])} at {place(known['lon'], known['lat'])} ({name})"
