"""Where a ranked subscription stands: its list after the updates so far, or its last report."""

from __future__ import annotations

import msgspec

from placewire.serve.ledger.rows import Head


def fold(kind: str, standing: str | None, head: Head) -> str:
    """What stands after one more result, as JSON.

    Of equal distances the one that came first is first, of equal scores the one that came last:
    updates come in that order. Among equals that one update adds, its own order holds.
    """
    if head.type == "report":
        return msgspec.json.encode({"at": head.at, "terms": head.terms}).decode()
    objects = msgspec.json.decode(standing)["objects"] if standing else []
    for dropped in head.drop:
        # Ids may be repeated: the one that leaves is the last of them in the order of results.
        at = max(
            (i for i, one in enumerate(objects) if one["object"] == dropped["object"]), default=-1
        )
        if at >= 0:
            del objects[at]
    added = [{name: one[name] for name in one if name != "data"} for one in head.add]
    if kind == "relevant":
        objects = sorted(added + objects, key=lambda one: -one["score"])
    else:
        objects = sorted(objects + added, key=lambda one: one["distance_m"])
    return msgspec.json.encode({"objects": objects}).decode()
