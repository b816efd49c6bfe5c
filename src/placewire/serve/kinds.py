"""How the ledger treats each type of result, and how results of a kind add up."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from placewire.model.kinds import kind_named


class ResultType(NamedTuple):
    """How the ledger treats one type of result line."""

    cumulative: bool  # changes the current result of its subscription
    initial: bool  # can belong to the subscription that starts at the same event
    names_objects: bool


RESULT_TYPES = {
    "match": ResultType(cumulative=False, initial=False, names_objects=True),
    "update": ResultType(cumulative=True, initial=True, names_objects=True),
    "report": ResultType(cumulative=True, initial=False, names_objects=False),
}


class ResultHead(msgspec.Struct, frozen=True):
    """The fields of a result line that the service reads."""

    seq: int
    type: str
    subscription: str = ""
    object: str = ""
    at: str = ""
    add: list[dict[str, Any]] = []
    drop: list[dict[str, Any]] = []
    terms: list[Any] = []

    @property
    def result_id(self) -> str:
        """The stable id: the same each time the pipeline produces this result."""
        end = f":{self.at}" if self.at else ""
        return f"{self.seq}:{self.type}:{self.subscription}{end}"

    @property
    def new_objects(self) -> list[str]:
        """The ids of the objects that the result adds."""
        return [self.object] if self.object else [named["object"] for named in self.add]

    def belongs_to(self, seq: int) -> bool:
        """Whether the result is of the subscription that started at event `seq`, or a later one.

        The first results of a subscription carry the seq of its own event; reports with that seq
        belong to the subscription that it replaced.
        """
        return self.seq > seq or (self.seq == seq and RESULT_TYPES[self.type].initial)


read_head = msgspec.json.Decoder(ResultHead).decode


def fold(kind: str, current: str | None, head: ResultHead) -> str:
    """Apply one result to the current result of a subscription; both are JSON.

    Equal distances keep the order of arrival and equal scores the reverse order, because updates
    arrive in that order. Objects that one update adds with equal values keep its order.
    """
    if not RESULT_TYPES[head.type].names_objects:
        return msgspec.json.encode({"at": head.at, "terms": head.terms}).decode()
    objects = msgspec.json.decode(current)["objects"] if current else []
    for dropped in head.drop:
        # Ids can repeat: the object that leaves is the last one of that id in result order.
        at = max(
            (i for i, one in enumerate(objects) if one["object"] == dropped["object"]), default=-1
        )
        if at >= 0:
            del objects[at]
    added = [{name: one[name] for name in one if name != "data"} for one in head.add]
    form = kind_named(kind).form
    if form.descending:
        objects = sorted(added + objects, key=lambda one: -one[form.order_by])
    else:
        objects = sorted(objects + added, key=lambda one: one[form.order_by])
    return msgspec.json.encode({"objects": objects}).decode()


def empty_result(kind: str) -> dict[str, Any]:
    """The current result of a subscription that has had none yet."""
    return {kind_named(kind).form.lists: []}
