"""What the service knows about kinds of subscription and types of result.

`KIND_FORMS` and `RESULT_TYPES` are the only place in `serve` that names a kind or lists result
types. The rest of the service reads their fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec


class KindForm(NamedTuple):
    """How subscriptions of one kind look to a client, and how their results add up."""

    example: dict[str, Any]  # a valid subscription, for the OpenAPI document
    lists: str = ""  # what its current result lists: "objects" or "terms"; empty: it has none
    order_by: str = ""  # the field that orders the objects of its current result
    descending: bool = False  # by that field; among equals the latest object is then first
    needs_one_of: tuple[str, ...] = ()  # fields of which a subscription has at least one


KIND_FORMS = {
    "boolean": KindForm(
        {
            "kind": "boolean",
            "region": {"circle": {"lon": -73.98, "lat": 40.75, "radius_m": 2000}},
            "where": "coffee AND (free OR sale)",
        },
        needs_one_of=("region", "where"),
    ),
    "nearest": KindForm(
        {"kind": "nearest", "lon": -73.98, "lat": 40.75, "keywords": ["bagel"], "k": 3},
        lists="objects",
        order_by="distance_m",
    ),
    "relevant": KindForm(
        {
            "kind": "relevant",
            "lon": -73.98,
            "lat": 40.75,
            "keywords": ["jazz"],
            "k": 5,
            "alpha": 0.5,
        },
        lists="objects",
        order_by="score",
        descending=True,
    ),
    "trending": KindForm(
        {"kind": "trending", "k": 10, "window": "PT1H", "every": "PT5M"}, lists="terms"
    ),
}


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
    form = KIND_FORMS[kind]
    if form.descending:
        objects = sorted(added + objects, key=lambda one: -one[form.order_by])
    else:
        objects = sorted(objects + added, key=lambda one: one[form.order_by])
    return msgspec.json.encode({"objects": objects}).decode()


def empty_result(kind: str) -> dict[str, Any]:
    """The current result of a subscription that has had none yet."""
    return {KIND_FORMS[kind].lists: []}
