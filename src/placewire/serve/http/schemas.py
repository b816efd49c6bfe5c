"""JSON Schemas of events, results and answers, as strict as the service.

Some rules are beyond JSON Schema: closed polygons, south below north, valid expressions, and sizes
in bytes.
"""

from __future__ import annotations

from typing import Any

from placewire.ingest.fields import MOST_LIMIT, query_fields, subscription_fields
from placewire.model.events import MOST_ID_CHARACTERS, MOST_K, MOST_TEXT_BYTES
from placewire.model.kinds import kind_named, kind_names
from placewire.plans.names import LEAF_METHODS
from placewire.serve.auth import MAX_NAME, ROLES
from placewire.serve.webhooks.sender import MAX_URL
from placewire.storage.runtime_files import MOST_WORKERS

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def fields(needed: Schema, optional: Schema | None = None, **more: Any) -> Schema:
    """An object schema with exactly these fields."""
    return {
        "type": "object",
        "required": list(needed),
        "properties": {**needed, **(optional or {})},
        "additionalProperties": False,
        **more,
    }


def array_of(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def constant(value: str) -> Schema:
    return {"type": "string", "const": value}


def choice(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def tuple_of(*items: Schema, **more: Any) -> Schema:
    count = len(items)
    return {"type": "array", "prefixItems": [*items], "minItems": count, "maxItems": count, **more}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


LAST = (1 << 62) - 1  # the largest number or position
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
LON: Schema = {"type": "number", "minimum": -180, "maximum": 180}
LAT: Schema = {"type": "number", "minimum": -90, "maximum": 90}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
METRES: Schema = {"type": "number", "exclusiveMinimum": 0}
ID: Schema = {"type": "string", "minLength": 1, "maxLength": MOST_ID_CHARACTERS}
SEQ: Schema = {**COUNT, "description": "The event's number in the log of all events"}
TIME: Schema = {
    "type": "string",
    "description": "RFC 3339 with an offset or Z",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})$",
    "examples": ["2026-03-01T12:00:00Z"],
}
DURATION: Schema = {
    "type": "string",
    "description": "ISO 8601, greater than zero, at most P36500D",
    "pattern": r"^P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?$",
    "examples": ["PT1H"],
}
DATA: Schema = {"description": "Any JSON, at most 16 KiB; matching ignores it"}
KEYWORDS = array_of({"type": "string", "minLength": 1}, minItems=1, maxItems=64)
K: Schema = {"type": "integer", "minimum": 1, "maximum": MOST_K}
EXAMPLES = [kind_named(kind).form.example for kind in kind_names()]
CORNER = {"id": "o1", "lon": -73.98, "lat": 40.75, "text": "Free coffee, 5th Ave!"}

KIND_FIELDS: dict[str, Schema] = {
    "region": ref("Region"),
    "where": ref("Where"),
    "lon": LON,
    "lat": LAT,
    "keywords": KEYWORDS,
    "k": K,
    "mode": choice("any", "all"),
    "within_m": METRES,
    "alpha": SHARE,
    "reach_m": METRES,
    "window": DURATION,
    "every": DURATION,
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT},
}


def kind_schemas(kinds: dict[str, Any], needed: Schema, optional: Schema) -> list[Schema]:
    """One schema per kind, from the field table that validation uses."""
    found = []
    for kind, own in kinds.items():
        must = {"kind": constant(kind), **needed}
        must |= {name: KIND_FIELDS[name] for name in own.needed}
        may = {**optional} | {name: KIND_FIELDS[name] for name in sorted(own.own - set(own.needed))}
        either = [{"required": [name]} for name in kind_named(kind).form.needs_one_of]
        found.append(fields(must, may, **({"anyOf": either} if either else {})))
    return found


ENTRY = {
    "number": {**COUNT, "description": "Number among the results of its subscription, from 1"},
    "position": {**COUNT, "description": "Position among all results"},
    "subscription": ID,
    "id": {**TEXT, "description": "Stable: the same each time the result is produced"},
    "result": ref("Result"),
}
NAMED = fields({"object": ID}, {"distance_m": {"type": "number"}, "score": {"type": "number"},
                                "data": DATA})  # fmt: skip
OBJECTS = array_of(NAMED)
TERMS = array_of(
    {
        "type": "array",
        "items": {"anyOf": [TEXT, COUNT]},
        "minItems": 2,
        "maxItems": 2,
        "description": "A term and the number of objects that contain it",
    }
)
DETAILS: Schema = {
    "type": "object",
    "description": "By id, for objects that are kept; the latest object of each id",
    "additionalProperties": fields({"seq": SEQ, "lon": LON, "lat": LAT}, {"text": TEXT}),
}
OF_RESULT = {"seq": SEQ, "subscription": ID}
BULK = {
    "accepted": COUNT,
    "rejected": COUNT,
    "errors": array_of(fields({"line": {"type": "integer", "minimum": 1}, "error": TEXT})),
}

URL: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_URL}
SECRET: Schema = {"type": "string", "minLength": 16, "maxLength": 256, "pattern": "^[ -~]*$"}
WAYS: Schema = {
    "throttle": {**nullable(DURATION), "description": "At most one result per interval"},
    "digest": {**nullable(DURATION), "description": "Results are collected over this interval"},
}
PLAN_NAME = choice("shared", *LEAF_METHODS)
WORKERS: Schema = {"type": "integer", "minimum": 1, "maximum": MOST_WORKERS}

# fmt: off
SCHEMAS: dict[str, Schema] = {
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {**TEXT, "description": "What is wrong, where, what was given"}},
        "examples": [{"error": "lon must be in [-180, 180], got 200.0"}],
    },
    "Object": fields(
        {"id": ID, "lon": LON, "lat": LAT, "text": {**TEXT, "maxLength": MOST_TEXT_BYTES}},
        {"ts": TIME, "data": DATA, "type": constant("object")},
        examples=[CORNER],
    ),
    "Region": {
        "oneOf": [
            fields({"box": tuple_of(LON, LAT, LON, LAT, description="West, south, east, north")}),
            fields({"circle": fields({"lon": LON, "lat": LAT, "radius_m": METRES})}),
            fields({"polygon": array_of(array_of(tuple_of(LON, LAT), minItems=4), minItems=1)}),
        ]
    },
    "Where": {
        "description": "Words with AND, OR, NOT and parentheses, or the same as a tree",
        "oneOf": [
            {"type": "string", "minLength": 1},
            *(fields({op: array_of(ref("Where"), minItems=1)}) for op in ("all", "any", "none")),
        ],
    },
    "Subscription": {
        "oneOf": kind_schemas(
            {kind: subscription_fields(kind) for kind in kind_names()},
            {},
            {"id": ID, "ts": TIME, "expires": TIME, "data": DATA, "type": constant("subscribe")},
        ),
        "examples": EXAMPLES,
    },
    "Query": {
        "oneOf": kind_schemas(
            {kind: query_fields(kind) for kind in kind_names()},
            {"last": DURATION},
            {"id": ID, "ts": TIME, "type": constant("query")},
        ),
        "examples": [{**EXAMPLES[0], "last": "PT1H"}],
    },
    "Result": {
        "oneOf": [
            fields({**OF_RESULT, "type": {"const": "match"}, "object": ID}, {"data": DATA}),
            fields({**OF_RESULT, "type": {"const": "update"}, "add": OBJECTS, "drop": OBJECTS}),
            fields({**OF_RESULT, "type": {"const": "report"}, "at": TIME, "terms": TERMS}),
        ]
    },
    "Entry": fields(ENTRY),
    "Answer": fields(
        {"type": {"const": "answer"}},
        {"query": ID, "total": COUNT, "objects": OBJECTS, "terms": TERMS, "details": DETAILS},
    ),
    "Standing": {
        "type": "object",
        "properties": {"objects": OBJECTS, "at": TIME, "terms": TERMS, "details": DETAILS},
        "additionalProperties": False,
    },
    "Held": {
        "type": "object",
        "required": ["id", "kind", "owner", "seq", "since", "status", "results", "subscription"],
        "properties": {
            "id": ID, "kind": choice(*kind_names()), "owner": TEXT, "seq": SEQ, "since": TIME,
            "status": choice("live", "ended", "expired"), "results": COUNT,
            "subscription": {"type": "object"}, "delivery": nullable(ref("Delivery")),
        },
    },
    "AcceptedObject": fields({"seq": SEQ}),
    "AcceptedObjects": fields({"first_seq": SEQ, **BULK}),
    "AcceptedSubscription": fields({"id": ID, "seq": SEQ, "replaced": FLAG}),
    "AcceptedSubscriptions": fields({"first_seq": SEQ, **BULK}),
    "NothingAccepted": fields({"error": TEXT}, {**BULK, "sent_lines": COUNT}),
    "Health": fields({
        "status": TEXT, "seq": COUNT, "committed_seq": COUNT, "lag_events": {"type": "integer"},
        "pipeline": choice("starting", "running", "away"), "version": TEXT,
    }),
    "Plan": {
        "type": "object",
        "required": ["name", "version", "workers", "leaves"],
        "properties": {
            "name": TEXT, "version": COUNT, "workers": COUNT, "why": TEXT,
            "leaves": array_of(fields({
                "leaf": COUNT, "worker": COUNT, "workers": array_of(COUNT),
                "box": array_of({"type": "number"}, minItems=4, maxItems=4),
                "load": {**SHARE, "description": "Share of the total load"},
                "terms": {**FLAG, "description": "Whether the leaf is also divided by terms"},
            })),
            "loads": array_of({**SHARE, "description": "A worker's share of the recent load"}),
            "changes": array_of(fields({"at": TIME, "line": TEXT})),
            "asked": {
                "type": "object", "properties": {"plan": PLAN_NAME, "workers": WORKERS},
                "additionalProperties": False, "minProperties": 1,
            },
        },
        "additionalProperties": False,
    },
    "AskedPlan": {
        "oneOf": [fields({"plan": PLAN_NAME}), fields({"workers": WORKERS})],
        "examples": [{"plan": "kdt"}],
    },
    "Pair": fields(
        {
            "object": {
                "type": ["object", "integer", "string"],
                "description": 'An object, `{"seq": N}`, or the id of a retained object',
            },
            "subscription": {
                "type": ["object", "string"],
                "description": 'A subscription, or `{"id": ID}`',
            },
        },
        examples=[
            {"object": {**CORNER, "ts": "2026-03-01T12:00:00Z"}, "subscription": EXAMPLES[0]}
        ],
    ),
    "Explanation": {
        "type": "object",
        "required": ["verdict", "matches", "object", "subscription", "interval"],
        "properties": {"verdict": TEXT, "matches": nullable(FLAG)},
    },
    "Status": {
        "type": "object",
        "required": ["batch", "service"],
        "properties": {"batch": {"type": "integer", "minimum": -1}, "service": {"type": "object"}},
    },
    "Role": choice(*ROLES),
    "NewKey": fields(
        {"name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
         "roles": array_of(ref("Role"), minItems=1)},
        examples=[{"name": "alerts", "roles": ["subscribe"]}],
    ),
    "Wish": fields(
        {"webhook": fields({"url": URL}, {"secret": nullable(SECRET)})},
        {
            **WAYS,
            "after": {
                "anyOf": [{**COUNT, "maximum": LAST}, {"const": "latest"}, {"type": "null"}],
                "description": "Start after this number; default: unchanged, or the oldest kept",
            },
        },
        examples=[{"webhook": {"url": "https://receiver.example/hook"}, "throttle": "PT10S"}],
    ),
    "Delivery": fields(
        {
            "webhook": fields(
                {"url": URL}, {"secret": {**TEXT, "description": "Shown once, if it was generated"}}
            ),
            **WAYS,
            "status": choice("live", "retrying", "ended"),
            "number": {**COUNT, "description": "Results up to this one are settled"},
            "delivered": COUNT, "pending": COUNT, "dropped": COUNT, "failed": COUNT,
            "attempts": COUNT, "next_attempt": nullable(TIME), "error": nullable(TEXT),
        }
    ),
    "DeadDelivery": fields({
        "id": TEXT, "first_number": COUNT, "last_number": COUNT, "attempts": COUNT, "error": TEXT,
        "at": TIME,
    }),
}
# fmt: on
