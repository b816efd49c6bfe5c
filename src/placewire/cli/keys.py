"""`placewire keys`: API keys of a server or of a state's ledger."""

from __future__ import annotations

import json
import sys

from placewire.cli.targets import Target, open_reader


def add_key(name: str, roles: list[str], target: Target, as_json: bool) -> None:
    """Make a key and print it, alone on standard output; raises Unusable."""
    with open_reader(target, make=True) as reader:
        made = reader.add_key(name, roles)
    if as_json:
        print(json.dumps(made))
    else:
        print(f"key {name} ({', '.join(made['roles'])}), shown this once:", file=sys.stderr)
        print(made["key"])


def list_keys(target: Target, as_json: bool) -> None:
    """Print names and roles; raises Unusable."""
    with open_reader(target) as reader:
        found = reader.keys()
    for one in found:
        print(json.dumps(one) if as_json else f"{one['name']}: {', '.join(one['roles'])}")
    if not found:
        print("no keys", file=sys.stderr)


def end_key(name: str, target: Target, as_json: bool) -> None:
    """End a key; raises Unusable."""
    with open_reader(target) as reader:
        ended = reader.end_key(name)
    print(json.dumps(ended) if as_json else f"ended {name}")
