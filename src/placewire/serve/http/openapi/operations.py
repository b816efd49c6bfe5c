"""The operations of the OpenAPI document: parameters, bodies and responses of each route."""

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
    array_of,
    fields,
    nullable,
    ref,
)

JSON, NDJSON, STREAM = "application/json", "application/x-ndjson", "text/event-stream"
EXAMPLE_LINES = '{"id":"o1","lon":-73.98,"lat":40.75,"text":"Free coffee"}\n'


def error_response(why: str) -> Schema:
    return {"description": why, "content": {JSON: {"schema": ref("Error")}}}


RESPONSES: dict[str, Schema] = {
    "400": error_response("The request or its body cannot be read"),
    "401": {
        **error_response("A key is needed, or it is not known"),
        "headers": {"WWW-Authenticate": {"schema": TEXT}},
    },
    "403": error_response("The key may not do this, or a page of elsewhere asks"),
    "404": error_response("Not there, or somebody else's"),
    "408": error_response("The body took too long"),
    "409": error_response("There is one of that name already, or somebody else has the id"),
    "413": error_response("The body is too large"),
    "415": error_response("The body is of another type than the call takes"),
    "422": error_response("A field, a parameter or an event is not valid"),
    "429": {
        **error_response("Too many events a second for this key"),
        "headers": {"Retry-After": {"schema": {"type": "integer"}}},
    },
    "505": error_response("A stream needs HTTP/1.1"),
    "503": error_response("Nothing can be written, or read, for now; see /health"),
}
COMMON_ERRORS = ("401", "403", "503")
BODY_ERRORS = ("400", "408", "413", "415", "422")


def response(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {JSON: {"schema": schema}}}


def operation(
    tag: str, does: str, replies: dict[str, Schema], *refused: str, **more: Any
) -> Schema:
    """One operation; `refused` lists its error statuses besides the common ones."""
    errors = {
        code: {"$ref": f"#/components/responses/{code}"} for code in (*refused, *COMMON_ERRORS)
    }
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


def query_parameter(name: str, schema: Schema, does: str = "") -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": does}


def path_parameter(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def limit(most: int) -> Schema:
    return query_parameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": most, "default": 100}
    )


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
NAME = path_parameter("id", ID)
FROM = query_parameter(
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
KEY = query_parameter("key", TEXT, "An API key, for those who cannot send headers")
SHOWN = query_parameter("objects", FLAG, "With the objects that results name")
DETAILS = query_parameter(
    "objects", FLAG, "With `details`: seq, place and text of the first 100 objects"
)


def stream(does: str, *parameters: Schema, missing: bool = False) -> Schema:
    refused = ("422", "505", "404") if missing else ("422", "505")
    replies = {"200": {"description": does, "content": {STREAM: {"schema": TEXT}}}}
    return operation("results", does, replies, *refused, parameters=[*parameters, KEY])


DELIVERY = "/v1/subscriptions/{id}/delivery"

PATHS: dict[str, dict[str, Schema]] = {
    "/health": {
        "get": {
            "tags": ["service"],
            "summary": "How the service is",
            "security": [{}],
            "responses": {
                "200": response("Well", ref("Health")),
                "503": response(
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
            "responses": {"200": response("OpenAPI 3.1", {"type": "object"})},
        }
    },
    "/v1/objects": {
        "post": operation(
            "objects",
            "Publish one object, or with lines many",
            {
                "202": response(
                    "On disk", {"oneOf": [ref("AcceptedObject"), ref("AcceptedObjects")]}
                ),
                "422": response("Not valid", ref("NothingAccepted")),
            },
            *BODY_ERRORS,
            "429",
            parameters=[ANY_KEY],
            requestBody=body_or_lines(ref("Object"), EXAMPLE_LINES),
        )
    },
    "/v1/objects/{seq}": {
        "get": operation(
            "objects",
            "An object as it was published",
            {
                "200": response(
                    "It", fields({"seq": SEQ, "object": {"type": "object", "examples": [CORNER]}})
                )
            },
            "404",
            parameters=[path_parameter("seq", SEQ)],
        )
    },
    "/v1/subscriptions": {
        "post": operation(
            "subscriptions",
            "Make one subscription, or with lines many; or replace those of these ids",
            {
                "201": response(
                    "On disk",
                    {"oneOf": [ref("AcceptedSubscription"), ref("AcceptedSubscriptions")]},
                ),
                "200": response("One was replaced", ref("AcceptedSubscription")),
                "422": response("Not valid", ref("NothingAccepted")),
            },
            *BODY_ERRORS,
            "409",
            "429",
            parameters=[ANY_KEY],
            requestBody=body_or_lines(ref("Subscription"), '{"kind":"boolean","where":"tea"}\n'),
        ),
        "get": operation(
            "subscriptions",
            "One's own subscriptions, by id",
            {
                "200": response(
                    "Some of them",
                    fields({"subscriptions": array_of(ref("Held")), "next": nullable(ID)}),
                )
            },
            "422",
            parameters=[limit(1_000), query_parameter("after", TEXT, "An id: begin after it")],
        ),
    },
    "/v1/subscriptions/{id}": {
        "put": operation(
            "subscriptions",
            "Make or replace the subscription of this id",
            {
                "201": response("Made", ref("AcceptedSubscription")),
                "200": response("Replaced", ref("AcceptedSubscription")),
            },
            *BODY_ERRORS,
            "409",
            "429",
            parameters=[NAME, ANY_KEY],
            requestBody=body(schema=ref("Subscription")),
        ),
        "delete": operation(
            "subscriptions",
            "End a subscription",
            {"200": response("Ended", fields({"id": ID, "seq": SEQ}))},
            "404",
            "422",
            "429",
            parameters=[NAME],
        ),
        "get": operation(
            "subscriptions",
            "One subscription",
            {"200": response("It", ref("Held"))},
            "404",
            "422",
            parameters=[NAME],
        ),
    },
    "/v1/subscriptions/{id}/standing": {
        "get": operation(
            "results",
            "Where a ranked subscription stands",
            {"200": response("Its list, or its last report", ref("Standing"))},
            "404",
            "422",
            parameters=[NAME, DETAILS],
        )
    },
    "/v1/subscriptions/{id}/results": {
        "get": operation(
            "results",
            "Results of a subscription, from a number on",
            {
                "200": response(
                    "Some of them", fields({"results": array_of(ref("Entry")), "next": COUNT})
                )
            },
            "404",
            "422",
            parameters=[NAME, limit(1_000), query_parameter("after", {**COUNT, "maximum": LAST})],
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
        "post": operation(
            "queries",
            "Ask about the objects that are kept, as of the last commit",
            {"200": response("The answer", ref("Answer"))},
            *BODY_ERRORS,
            parameters=[query_parameter("with_data", FLAG, "With the objects' data"), DETAILS],
            requestBody=body(schema=ref("Query")),
        )
    },
    "/v1/explain": {
        "post": operation(
            "queries",
            "Why an object does or does not match a subscription",
            {"200": response("The reasons", ref("Explanation"))},
            *BODY_ERRORS,
            "404",
            requestBody=body(schema=ref("Pair")),
        )
    },
    "/explain": {
        "post": operation(
            "queries",
            "The same as `/v1/explain`",
            {"200": response("The reasons", ref("Explanation"))},
            *BODY_ERRORS,
            "404",
            requestBody=body(schema=ref("Pair")),
        )
    },
    "/v1/plan": {
        "get": operation(
            "service",
            "The plan of boolean subscriptions that is in force",
            {"200": response("It", ref("Plan"))},
        ),
        "post": operation(
            "service",
            "Ask for another plan, or other workers, by hand",
            {"202": response("Asked for", fields({"asked": ref("AskedPlan")}))},
            *BODY_ERRORS,
            requestBody=body(schema=ref("AskedPlan")),
        ),
    },
    "/v1/status": {
        "get": operation(
            "service",
            "How the pipeline and the service stand",
            {"200": response("As of the last commit, and of the moment", ref("Status"))},
            "422",
            parameters=[
                query_parameter(
                    "leaves", {"type": "integer", "minimum": 0, "maximum": 1_000, "default": 10}
                )
            ],
        )
    },
    "/v1/dead-letters": {
        "get": operation(
            "service",
            "Events that the pipeline refused",
            {
                "200": response(
                    "Some of them",
                    fields(
                        {
                            "dead_letters": array_of(
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
                query_parameter("after", {"type": "integer", "minimum": -1, "maximum": LAST}),
            ],
        )
    },
    "/v1/keys": {
        "post": operation(
            "service",
            "Make a key; it is shown this once",
            {
                "201": response(
                    "Made",
                    fields(
                        {
                            "name": TEXT,
                            "roles": array_of(ref("Role")),
                            "key": {"type": "string", "pattern": "^pw_"},
                        }
                    ),
                )
            },
            *BODY_ERRORS,
            "409",
            requestBody=body(schema=ref("NewKey")),
        ),
        "get": operation(
            "service",
            "The keys that there are, without themselves",
            {
                "200": response(
                    "All of them",
                    fields(
                        {"keys": array_of(fields({"name": TEXT, "roles": array_of(ref("Role"))}))}
                    ),
                )
            },
        ),
    },
    "/v1/keys/{name}": {
        "delete": operation(
            "service",
            "End a key at once; its subscriptions stay",
            {"200": response("Ended", fields({"name": TEXT}))},
            "404",
            parameters=[path_parameter("name", {"type": "string", "minLength": 1})],
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
        "put": operation(
            "results",
            "Send results to a webhook",
            {
                "201": response("Made", ref("Delivery")),
                "200": response("Replaced", ref("Delivery")),
            },
            *BODY_ERRORS,
            "404",
            parameters=[NAME],
            requestBody=body(schema=ref("Wish")),
        ),
        "get": operation(
            "results",
            "A webhook, and where results went",
            {"200": response("It", ref("Delivery"))},
            "404",
            "422",
            parameters=[NAME],
        ),
        "delete": operation(
            "results",
            "End a webhook; results stay",
            {"200": response("Ended", fields({"id": ID}))},
            "404",
            "422",
            parameters=[NAME],
        ),
    },
    f"{DELIVERY}/dead": {
        "get": operation(
            "results",
            "Deliveries that were given up",
            {
                "200": response(
                    "Some of them", fields({"dead": array_of(ref("DeadDelivery")), "next": COUNT})
                )
            },
            "404",
            "422",
            parameters=[NAME, limit(1_000), query_parameter("after", {**COUNT, "maximum": LAST})],
        )
    },
    f"{DELIVERY}/dead/retry": {
        "post": operation(
            "results",
            "Send each of them once more",
            {
                "202": response("Asked for", fields({"retried": COUNT})),
                "409": response("The webhook has ended", ref("Error")),
            },
            "404",
            "422",
            parameters=[NAME],
        )
    },
}
