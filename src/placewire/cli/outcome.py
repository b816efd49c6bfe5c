"""What came of a command: a line for people, facts for programs."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TextIO


class Outcome(NamedTuple):
    """One line, and the same as a JSON object."""

    line: str
    facts: dict[str, Any]


def tell(outcome: Outcome, as_json: bool, plain_to: TextIO | None = None) -> None:
    """Print it: JSON on standard output; the line there too, unless it goes elsewhere."""
    if as_json:
        print(json.dumps(outcome.facts, ensure_ascii=False))
    else:
        print(outcome.line, file=plain_to)
