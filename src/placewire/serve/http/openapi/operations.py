"""What can be called: each route's parameters, bodies and replies."""

from __future__ import annotations

from typing import Any

from placewire.serve.http.openapi.schemas import (
    CORNER,
    COUNT,
    ID,
    LAST,
    SEQ,
    TEXT,
    Schema,
    fields,
    listed,
    maybe,
    ref,
)

JSON, NDJSON, STREAM = "application/json", "application/x-ndjson", "text/event-stream"
EXAMPLE_LINES = '{"id":"o1","lon":-73.98,"lat":40.75,"text":"Free coffee"}\n'


def refusal(why: str) -> Schema:
    return {"description": why, "content": {JSON: {"schema": ref("Error")}}}


RESPONSES: dict[str, Schema] = {
    "400": refusal("The request or its body cannot be read"),
    "401": {
        **refusal("A key is needed, or it is not known"),
        "headers": {"WWW-Authenticate": {"schema": TEXT}},
    },
    "403": refusal("The key may not do this, or a page of elsewhere asks"),
    "404": refusal("Not there, or somebody else's"),
    "408": refusal("The body took too long"),
    "409": refusal("There is one of that name already, or somebody else has the id"),
    "413": refusal("The body is too large"),
    "415": refusal("The body is of another type than the call takes"),
    "422": refusal("A field, a parameter or an event is not valid"),
    "429": {
        **refusal("Too many events a second for this key"),
        "headers": {"Retry-After": {"schema": {"type": "integer"}}},
    },
    "505": refusal("A stream needs HTTP/1.1"),
    "503": refusal("Nothing can be written, or read, for now; see /health"),
}
ALWAYS = ("401", "403", "503")
OF_BODIES = ("400", "408", "413", "415", "422")


def told(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {JSON: {"schema": schema}}}


def call(tag: str, does: str, replies: dict[str, Schema], *refused: str, **more: Any) -> Schema:
    """One operation; `refused` are the statuses of errors, beside those that all have."""
    errors = {code: {"$ref": f"#/components/responses/{code}"} for code in (*refused, *ALWAYS)}
    return {
        "tags": [tag],
        "summary": does,
        "responses": dict(sorted({**errors, **replies}.items())),
        **more,
    }


def body(**content: Schema) -> Schema:
    return {"required": True, "content": {JSON: {"schema": content["schema"]}}}


def body_or_lines(schema: Schema, lines: str) -> Schema:
    taken = body(schema=schema)
    taken["content"][NDJSON] = {
        "schema": {"type": "string", "description": "One a line"},
        "examples": {"lines": {"value": lines}},
    }
    return taken


def asked(name: str, schema: Schema, does: str = "") -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": does}


def in_path(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def limit(most: int) -> Schema:
    return asked("limit", {"type": "integer", "minimum": 1, "maximum": most, "default": 100})


FLAG: Schema = {"type": "integer", "enum": [0, 1], "default": 0}
ANY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A request that was answered before gets the same reply again",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "pattern": "^[!-~]([ -~]*[!-~])?$",
    },
}
NAME = in_path("id", ID)
FROM = asked(
    "after",
    {"anyOf": [{"type": "integer", "minimum": 0, "maximum": LAST}, {"const": "latest"}]},
    "Begin after this number, or with what comes; default: all that is kept",
)
RESUME: Schema = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "As `after`; a browser sends it when it comes back",
    "schema": {"type": "integer", "minimum": 0, "maximum": LAST},
}
KEY = asked("key", TEXT, "An API key, for those who cannot send headers")
SHOWN = asked("objects", FLAG, "With the objects that results name")
DETAILS = asked("objects", FLAG, "With `details`: seq, place and text of the first 100 objects")


def stream(does: str, *parameters: Schema, missing: bool = False) -> Schema:
    refused = ("422", "505", "404") if missing else ("422", "505")
    replies = {"200": {"description": does, "content": {STREAM: {"schema": TEXT}}}}
    return call("results", does, replies, *refused, parameters=[*parameters, KEY])


DELIVERY = "/v1/subscriptions/{id}/delivery"

PATHS: dict[str, dict[str, Schema]] = {
    "/health": {
        "get": {
            "tags": ["service"],
            "summary": "How the service is",
            "security": [{}],
            "responses": {
                "200": told("Well", ref("Health")),
                "503": told(
                    "Not well: `status` says why", {"anyOf": [ref("Health"), ref("Error")]}
                ),
            },
        }
    },
    "/openapi.json": {
        "get": {
            "tags": ["service"],
            "summary": "This document",
            "security": [{}],
            "responses": {"200": told("OpenAPI 3.1", {"type": "object"})},
        }
    },
    "/v1/objects": {
        "post": call(
            "objects",
            "Publish one object, or with lines many",
            {
                "202": told("On disk", {"oneOf": [ref("AcceptedObject"), ref("AcceptedObjects")]}),
                "422": told("Not valid", ref("NothingAccepted")),
            },
            *OF_BODIES,
            "429",
            parameters=[ANY_KEY],
            requestBody=body_or_lines(ref("Object"), EXAMPLE_LINES),
        )
    },
    "/v1/objects/{seq}": {
        "get": call(
            "objects",
            "An object as it was published",
            {
                "200": told(
                    "It", fields({"seq": SEQ, "object": {"type": "object", "examples": [CORNER]}})
                )
            },
            "404",
            parameters=[in_path("seq", SEQ)],
        )
    },
    "/v1/subscriptions": {
        "post": call(
            "subscriptions",
            "Make one subscription, or with lines many; or replace those of these ids",
            {
                "201": told(
                    "On disk",
                    {"oneOf": [ref("AcceptedSubscription"), ref("AcceptedSubscriptions")]},
                ),
                "200": told("One was replaced", ref("AcceptedSubscription")),
                "422": told("Not valid", ref("NothingAccepted")),
            },
            *OF_BODIES,
            "409",
            "429",
            parameters=[ANY_KEY],
            requestBody=body_or_lines(ref("Subscription"), '{"kind":"boolean","where":"tea"}\n'),
        ),
        "get": call(
            "subscriptions",
            "One's own subscriptions, by id",
            {
                "200": told(
                    "Some of them",
                    fields({"subscriptions": listed(ref("Held")), "next": maybe(ID)}),
                )
            },
            "422",
            parameters=[limit(1_000), asked("after", TEXT, "An id: begin after it")],
        ),
    },
    "/v1/subscriptions/{id}": {
        "put": call(
            "subscriptions",
            "Make or replace the subscription of this id",
            {
                "201": told("Made", ref("AcceptedSubscription")),
                "200": told("Replaced", ref("AcceptedSubscription")),
            },
            *OF_BODIES,
            "409",
            "429",
            parameters=[NAME, ANY_KEY],
            requestBody=body(schema=ref("Subscription")),
        ),
        "delete": call(
            "subscriptions",
            "End a subscription",
            {"200": told("Ended", fields({"id": ID, "seq": SEQ}))},
            "404",
            "422",
            "429",
            parameters=[NAME],
        ),
        "get": call(
            "subscriptions",
            "One subscription",
            {"200": told("It", ref("Held"))},
            "404",
            "422",
            parameters=[NAME],
        ),
    },
    "/v1/subscriptions/{id}/standing": {
        "get": call(
            "results",
            "Where a ranked subscription stands",
            {"200": told("Its list, or its last report", ref("Standing"))},
            "404",
            "422",
            parameters=[NAME, DETAILS],
        )
    },
    "/v1/subscriptions/{id}/results": {
        "get": call(
            "results",
            "Results of a subscription, from a number on",
            {"200": told("Some of them", fields({"results": listed(ref("Entry")), "next": COUNT}))},
            "404",
            "422",
            parameters=[NAME, limit(1_000), asked("after", {**COUNT, "maximum": LAST})],
        )
    },
    "/v1/subscriptions/{id}/events": {
        "get": stream(
            "Results of a subscription as server-sent events",
            NAME,
            FROM,
            RESUME,
            SHOWN,
            missing=True,
        )
    },
    "/v1/events": {
        "get": stream(
            "Results of all one's own subscriptions as server-sent events", FROM, RESUME, SHOWN
        )
    },
    "/v1/live": {
        "get": stream("A sample of objects, figures and changes of plan, as server-sent events")
    },
    "/v1/query": {
        "post": call(
            "queries",
            "Ask about the objects that are kept, as of the last commit",
            {"200": told("The answer", ref("Answer"))},
            *OF_BODIES,
            parameters=[asked("with_data", FLAG, "With the objects' data"), DETAILS],
            requestBody=body(schema=ref("Query")),
        )
    },
    "/v1/explain": {
        "post": call(
            "queries",
            "Why an object does or does not match a subscription",
            {"200": told("The reasons", ref("Explanation"))},
            *OF_BODIES,
            "404",
            requestBody=body(schema=ref("Pair")),
        )
    },
    "/explain": {
        "post": call(
            "queries",
            "The same as `/v1/explain`",
            {"200": told("The reasons", ref("Explanation"))},
            *OF_BODIES,
            "404",
            requestBody=body(schema=ref("Pair")),
        )
    },
    "/v1/plan": {
        "get": call(
            "service",
            "The plan of boolean subscriptions that is in force",
            {"200": told("It", ref("Plan"))},
        ),
        "post": call(
            "service",
            "Ask for another plan, or other workers, by hand",
            {"202": told("Asked for", fields({"asked": ref("AskedPlan")}))},
            *OF_BODIES,
            requestBody=body(schema=ref("AskedPlan")),
        ),
    },
    "/v1/status": {
        "get": call(
            "service",
            "How the pipeline and the service stand",
            {"200": told("As of the last commit, and of the moment", ref("Status"))},
            "422",
            parameters=[
                asked("leaves", {"type": "integer", "minimum": 0, "maximum": 1_000, "default": 10})
            ],
        )
    },
    "/v1/dead-letters": {
        "get": call(
            "service",
            "Events that the pipeline refused",
            {
                "200": told(
                    "Some of them",
                    fields(
                        {
                            "dead_letters": listed(
                                fields({"seq": SEQ, "error": TEXT, "event": TEXT})
                            ),
                            "next": {"type": "integer", "minimum": -1},
                        }
                    ),
                )
            },
            "422",
            parameters=[
                limit(1_000),
                asked("after", {"type": "integer", "minimum": -1, "maximum": LAST}),
            ],
        )
    },
    "/v1/keys": {
        "post": call(
            "service",
            "Make a key; it is shown this once",
            {
                "201": told(
                    "Made",
                    fields(
                        {
                            "name": TEXT,
                            "roles": listed(ref("Role")),
                            "key": {"type": "string", "pattern": "^pw_"},
                        }
                    ),
                )
            },
            *OF_BODIES,
            "409",
            requestBody=body(schema=ref("NewKey")),
        ),
        "get": call(
            "service",
            "The keys that there are, without themselves",
            {
                "200": told(
                    "All of them",
                    fields({"keys": listed(fields({"name": TEXT, "roles": listed(ref("Role"))}))}),
                )
            },
        ),
    },
    "/v1/keys/{name}": {
        "delete": call(
            "service",
            "End a key at once; its subscriptions stay",
            {"200": told("Ended", fields({"name": TEXT}))},
            "404",
            parameters=[in_path("name", {"type": "string", "minLength": 1})],
        )
    },
    "/metrics": {
        "get": {
            "tags": ["service"],
            "summary": "Figures for Prometheus",
            "security": [{}],
            "responses": {
                "200": {
                    "description": "In the text format",
                    "content": {"text/plain": {"schema": TEXT}},
                },
                "503": {"$ref": "#/components/responses/503"},
            },
        }
    },
    DELIVERY: {
        "put": call(
            "results",
            "Send results to a webhook",
            {"201": told("Made", ref("Delivery")), "200": told("Replaced", ref("Delivery"))},
            *OF_BODIES,
            "404",
            parameters=[NAME],
            requestBody=body(schema=ref("Wish")),
        ),
        "get": call(
            "results",
            "A webhook, and where results went",
            {"200": told("It", ref("Delivery"))},
            "404",
            "422",
            parameters=[NAME],
        ),
        "delete": call(
            "results",
            "End a webhook; results stay",
            {"200": told("Ended", fields({"id": ID}))},
            "404",
            "422",
            parameters=[NAME],
        ),
    },
    f"{DELIVERY}/dead": {
        "get": call(
            "results",
            "Deliveries that were given up",
            {
                "200": told(
                    "Some of them", fields({"dead": listed(ref("DeadDelivery")), "next": COUNT})
                )
            },
            "404",
            "422",
            parameters=[NAME, limit(1_000), asked("after", {**COUNT, "maximum": LAST})],
        )
    },
    f"{DELIVERY}/dead/retry": {
        "post": call(
            "results",
            "Send each of them once more",
            {
                "202": told("Asked for", fields({"retried": COUNT})),
                "409": told("The webhook has ended", ref("Error")),
            },
            "404",
            "422",
            parameters=[NAME],
        )
    },
}
