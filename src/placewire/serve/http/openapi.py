"""The HTTP interface as an OpenAPI 3.1 document: each route's parameters, bodies and responses.

Schemas of events, results and answers are in `schemas`. Tests compare both with the application's
routes and with its actual responses.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from placewire import __version__
from placewire.serve.http.schemas import (
    CORNER,
    COUNT,
    ID,
    LAST,
    SCHEMAS,
    SEQ,
    TEXT,
    Schema,
    array_of,
    fields,
    nullable,
    ref,
)

Replies = dict[str, tuple[str, Schema | str]]  # by status: a description and a schema or its name

JSON, NDJSON, STREAM = "application/json", "application/x-ndjson", "text/event-stream"
ABOUT = (
    "Match geo-tagged text against standing subscriptions. A reply confirms that events are on"
    " disk. Results are numbered, and every read or stream can start after a given number."
)
TAGS = {
    "objects": "Publish objects",
    "subscriptions": "Manage subscriptions",
    "results": "Read and follow results",
    "queries": "Query retained objects",
    "service": "Operate the service",
}
KEY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, created by `placewire keys add` or `POST /v1/keys`. Local clients"
    " need none unless the server requires keys. Streams and sockets also accept it as `?key=`.",
}
ERRORS = {
    "400": "The request or its body cannot be read",
    "401": "The key is missing or unknown",
    "403": "The key lacks the role, or a page of another origin sent the request",
    "404": "Does not exist, or belongs to another owner",
    "408": "The body took too long",
    "409": "The name or the id is taken",
    "413": "The body is too large",
    "415": "The content type is not supported",
    "422": "A field, a parameter or an event is invalid",
    "429": "The key exceeds its rate limit",
    "505": "Streams need HTTP/1.1",
    "503": "The journal or the ledger is unavailable; see /health",
}
COMMON_ERRORS = ("401", "403", "503")
BODY_ERRORS = "400 408 413 415 422"


def response(description: str, schema: Schema | str) -> Schema:
    """A JSON response; a schema can be given by name."""
    schema = ref(schema) if isinstance(schema, str) else schema
    return {"description": description, "content": {JSON: {"schema": schema}}}


RESPONSES = {status: response(why, "Error") for status, why in ERRORS.items()}
RESPONSES["401"]["headers"] = {"WWW-Authenticate": {"schema": TEXT}}
RESPONSES["429"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}


def operation(
    tag: str,
    does: str,
    replies: Replies,
    refused: str = "",
    *parameters: Schema,
    body: str = "",
    example_lines: str = "",
) -> Schema:
    """One operation; `refused` lists its error statuses besides the common ones.

    `body` names the schema of the request body, which can also be JSON lines if there is an
    example of them.
    """
    errors = {
        status: {"$ref": f"#/components/responses/{status}"}
        for status in (*refused.split(), *COMMON_ERRORS)
    }
    fine = {status: response(*reply) for status, reply in replies.items()}
    made: Schema = {
        "tags": [tag],
        "summary": does,
        "responses": dict(sorted({**errors, **fine}.items())),
    }
    if parameters:
        made["parameters"] = list(parameters)
    if body:
        content: Schema = {JSON: {"schema": ref(body)}}
        if example_lines:
            content[NDJSON] = {
                "schema": {"type": "string", "description": "One per line"},
                "examples": {"lines": {"value": example_lines}},
            }
        made["requestBody"] = {"required": True, "content": content}
    return made


def open_operation(does: str, responses: Schema) -> Schema:
    """An operation of the service that needs no key."""
    return {"tags": ["service"], "summary": does, "security": [{}], "responses": responses}


def query_parameter(name: str, schema: Schema, does: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": does}


def path_parameter(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def header(name: str, schema: Schema, does: str) -> Schema:
    return {"name": name, "in": "header", "schema": schema, "description": does}


def integer(least: int, most: int, **more: Any) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, **more}


FLAG: Schema = {"type": "integer", "enum": [0, 1], "default": 0}
ANY_KEY = header(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    "A repeated request with the same key gets the first reply again",
)
NAME = path_parameter("id", ID)
LIMIT = query_parameter("limit", integer(1, 1_000, default=100), "Maximum number of entries")
AFTER = query_parameter("after", integer(0, LAST), "Start after this number")
FROM = query_parameter(
    "after",
    {"anyOf": [integer(0, LAST), {"const": "latest"}]},
    "Start after this number, or with the next result; default: the oldest that is kept",
)
RESUME = header(
    "Last-Event-ID", integer(0, LAST), "Same as `after`; browsers send it when they reconnect"
)
KEY = query_parameter("key", TEXT, "An API key, for clients that cannot send headers")
SHOWN = query_parameter("objects", FLAG, "Add the objects that results name")
DETAILS = query_parameter(
    "objects", FLAG, "Add `details`: seq, position and text of the first 100 objects"
)
ROLES = array_of(ref("Role"))


def stream(does: str, *parameters: Schema, missing: bool = False) -> Schema:
    refused = "422 505 404" if missing else "422 505"
    made = operation("results", does, {}, refused, *parameters, KEY)
    reply = {"description": does, "content": {STREAM: {"schema": TEXT}}}
    return {**made, "responses": {"200": reply, **made["responses"]}}


def explain(does: str) -> Schema:
    replies: Replies = {"200": ("The reasons", "Explanation")}
    return operation("queries", does, replies, f"{BODY_ERRORS} 404", body="Pair")


LISTED = fields({"subscriptions": array_of(ref("Held")), "next": nullable(ID)})
FOUND = fields({"seq": SEQ, "object": {"type": "object", "examples": [CORNER]}})
RESULTS = fields({"results": array_of(ref("Entry")), "next": COUNT})
DEAD = fields({"dead": array_of(ref("DeadDelivery")), "next": COUNT})
DEAD_LETTERS = fields(
    {
        "dead_letters": array_of(fields({"seq": SEQ, "error": TEXT, "event": TEXT})),
        "next": {"type": "integer", "minimum": -1},
    }
)
NEW_KEY = fields({"name": TEXT, "roles": ROLES, "key": {"type": "string", "pattern": "^pw_"}})
KEYS = fields({"keys": array_of(fields({"name": TEXT, "roles": ROLES}))})
HEALTH = {
    "200": response("Healthy", "Health"),
    "503": response("Unhealthy: `status` says why", {"anyOf": [ref("Health"), ref("Error")]}),
}
METRICS = {
    "200": {"description": "Prometheus text format", "content": {"text/plain": {"schema": TEXT}}},
    "503": {"$ref": "#/components/responses/503"},
}

SUBSCRIPTION = "/v1/subscriptions/{id}"
DELIVERY = f"{SUBSCRIPTION}/delivery"
# By method and path, a few lines each.
# fmt: off
OPERATIONS = {
    "get /health": open_operation("Health of the service", HEALTH),
    "get /openapi.json": open_operation(
        "This document", {"200": response("OpenAPI 3.1", {"type": "object"})}),
    "post /v1/objects": operation(
        "objects", "Publish one object, or many as JSON lines",
        {"202": ("Accepted", {"oneOf": [ref("AcceptedObject"), ref("AcceptedObjects")]}),
         "422": ("Invalid", "NothingAccepted")},
        f"{BODY_ERRORS} 429", ANY_KEY, body="Object",
        example_lines='{"id":"o1","lon":-73.98,"lat":40.75,"text":"Free coffee"}\n'),
    "get /v1/objects/{seq}": operation(
        "objects", "An object as it was published", {"200": ("The object", FOUND)},
        "404", path_parameter("seq", SEQ)),
    "post /v1/subscriptions": operation(
        "subscriptions", "Create one subscription, or many as JSON lines; replaces existing ids",
        {"201": ("Accepted",
                 {"oneOf": [ref("AcceptedSubscription"), ref("AcceptedSubscriptions")]}),
         "200": ("Replaced", "AcceptedSubscription"),
         "422": ("Invalid", "NothingAccepted")},
        f"{BODY_ERRORS} 409 429", ANY_KEY, body="Subscription",
        example_lines='{"kind":"boolean","where":"tea"}\n'),
    "get /v1/subscriptions": operation(
        "subscriptions", "Your subscriptions, by id", {"200": ("One page", LISTED)},
        "422", LIMIT, query_parameter("after", TEXT, "Start after this id")),
    f"put {SUBSCRIPTION}": operation(
        "subscriptions", "Create or replace the subscription with this id",
        {"201": ("Created", "AcceptedSubscription"), "200": ("Replaced", "AcceptedSubscription")},
        f"{BODY_ERRORS} 409 429", NAME, ANY_KEY, body="Subscription"),
    f"delete {SUBSCRIPTION}": operation(
        "subscriptions", "End a subscription", {"200": ("Ended", fields({"id": ID, "seq": SEQ}))},
        "404 422 429", NAME),
    f"get {SUBSCRIPTION}": operation(
        "subscriptions", "One subscription", {"200": ("The subscription", "Held")},
        "404 422", NAME),
    f"get {SUBSCRIPTION}/standing": operation(
        "results", "The current result of a ranked subscription",
        {"200": ("Its list, or its last report", "Standing")}, "404 422", NAME, DETAILS),
    f"get {SUBSCRIPTION}/results": operation(
        "results", "Results of a subscription after a number", {"200": ("One page", RESULTS)},
        "404 422", NAME, LIMIT, AFTER),
    f"get {SUBSCRIPTION}/events": stream(
        "Results of a subscription as server-sent events", NAME, FROM, RESUME, SHOWN, missing=True),
    "get /v1/events": stream(
        "Results of all your subscriptions as server-sent events", FROM, RESUME, SHOWN),
    "get /v1/live": stream(
        "Sampled objects, counters and plan changes as server-sent events"),
    "post /v1/query": operation(
        "queries", "Query retained objects as of the last commit",
        {"200": ("The answer", "Answer")}, BODY_ERRORS,
        query_parameter("with_data", FLAG, "Add the data of objects"), DETAILS, body="Query"),
    "post /v1/explain": explain("Why an object did or did not match a subscription"),
    "post /explain": explain("Same as `/v1/explain`"),
    "get /v1/plan": operation(
        "service", "The boolean plan in use", {"200": ("The plan", "Plan")}),
    "post /v1/plan": operation(
        "service", "Request another plan or another number of workers",
        {"202": ("Requested", fields({"asked": ref("AskedPlan")}))}, BODY_ERRORS, body="AskedPlan"),
    "get /v1/status": operation(
        "service", "Status of the pipeline and the service",
        {"200": ("As of the last commit, with current counters", "Status")},
        "422", query_parameter("leaves", integer(0, 1_000, default=10),
        "Number of heaviest leaves to list")),
    "get /v1/dead-letters": operation(
        "service", "Events that the pipeline rejected", {"200": ("One page", DEAD_LETTERS)},
        "422", LIMIT, query_parameter("after", integer(-1, LAST), "Start after this seq")),
    "post /v1/keys": operation(
        "service", "Create a key; the reply shows it once", {"201": ("Created", NEW_KEY)},
        f"{BODY_ERRORS} 409", body="NewKey"),
    "get /v1/keys": operation(
        "service", "All keys by name and role", {"200": ("The keys", KEYS)}),
    "delete /v1/keys/{name}": operation(
        "service", "Delete a key at once; its subscriptions stay",
        {"200": ("Deleted", fields({"name": TEXT}))},
        "404", path_parameter("name", {"type": "string", "minLength": 1})),
    "get /metrics": open_operation("Prometheus metrics", METRICS),
    f"put {DELIVERY}": operation(
        "results", "Deliver results to a webhook",
        {"201": ("Created", "Delivery"), "200": ("Replaced", "Delivery")},
        f"{BODY_ERRORS} 404", NAME, body="Wish"),
    f"get {DELIVERY}": operation(
        "results", "A webhook and its counters", {"200": ("The webhook", "Delivery")},
        "404 422", NAME),
    f"delete {DELIVERY}": operation(
        "results", "End a webhook; results stay", {"200": ("Ended", fields({"id": ID}))},
        "404 422", NAME),
    f"get {DELIVERY}/dead": operation(
        "results", "Dead deliveries", {"200": ("One page", DEAD)},
        "404 422", NAME, LIMIT, AFTER),
    f"post {DELIVERY}/dead/retry": operation(
        "results", "Retry each dead delivery once",
        {"202": ("Queued", fields({"retried": COUNT})),
         "409": ("The webhook has ended", "Error")},
        "404 422", NAME),
}
# fmt: on


def paths() -> dict[str, dict[str, Schema]]:
    """The operations by path, then by method."""
    found: dict[str, dict[str, Schema]] = {}
    for name, made in OPERATIONS.items():
        method, path = name.split()
        found.setdefault(path, {})[method] = made
    return found


def make_document() -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Placewire",
            "version": __version__,
            "summary": "Match geo-tagged text against standing subscriptions",
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"key": []}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "paths": paths(),
        "components": {
            "schemas": SCHEMAS,
            "responses": RESPONSES,
            "securitySchemes": {"key": KEY_SCHEME},
        },
    }


@cache
def encode_document() -> bytes:
    """The OpenAPI document as JSON."""
    return msgspec.json.encode(make_document())
