"""Webhooks and metrics as the OpenAPI document has them."""

from __future__ import annotations

from placewire.serve.addresses import MOST_URL
from placewire.serve.openapi.operations import (
    LAST,
    NAME,
    OF_BODIES,
    asked,
    body,
    call,
    limit,
    told,
)
from placewire.serve.openapi.schemas import (
    COUNT,
    DURATION,
    ID,
    TEXT,
    TIME,
    Schema,
    fields,
    listed,
    maybe,
    ref,
)

URL: Schema = {"type": "string", "minLength": 1, "maxLength": MOST_URL}
SECRET: Schema = {"type": "string", "minLength": 16, "maxLength": 256, "pattern": "^[ -~]*$"}
WAYS: Schema = {
    "throttle": {**maybe(DURATION), "description": "At most one result in so long"},
    "digest": {**maybe(DURATION), "description": "Results are collected so long"},
}
PATH = "/v1/subscriptions/{id}/delivery"

DELIVERY_SCHEMAS: dict[str, Schema] = {
    "Wish": fields(
        {"webhook": fields({"url": URL}, {"secret": maybe(SECRET)})},
        {
            **WAYS,
            "after": {
                "anyOf": [{**COUNT, "maximum": LAST}, {"const": "latest"}, {"type": "null"}],
                "description": "Begin after this number; default: where it was, or all that is"
                " kept",
            },
        },
        examples=[{"webhook": {"url": "https://receiver.example/hook"}, "throttle": "PT10S"}],
    ),
    "Delivery": fields(
        {
            "webhook": fields(
                {"url": URL}, {"secret": {**TEXT, "description": "Shown once, if it was made"}}
            ),
            **WAYS,
            "status": {"type": "string", "enum": ["live", "retrying", "ended"]},
            "number": {**COUNT, "description": "Results up to this one are settled"},
            "delivered": COUNT,
            "pending": COUNT,
            "dropped": COUNT,
            "failed": COUNT,
            "attempts": COUNT,
            "next_attempt": maybe(TIME),
            "error": maybe(TEXT),
        }
    ),
    "DeadDelivery": fields(
        {
            "id": TEXT,
            "first_number": COUNT,
            "last_number": COUNT,
            "attempts": COUNT,
            "error": TEXT,
            "at": TIME,
        }
    ),
}

DELIVERY_PATHS: dict[str, dict[str, Schema]] = {
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
    PATH: {
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
    f"{PATH}/dead": {
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
    f"{PATH}/dead/retry": {
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
