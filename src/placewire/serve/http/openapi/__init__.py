"""The HTTP interface as an OpenAPI 3.1 document.

`schemas` describes events, results and answers, `operations` the calls. Tests compare both with the
application's routes and with its actual responses.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from placewire import __version__
from placewire.serve.http.openapi.operations import PATHS, RESPONSES
from placewire.serve.http.openapi.schemas import SCHEMAS

ABOUT = (
    "Standing space-and-text subscriptions over a stream of objects. Objects and subscriptions are"
    " on disk before the reply; every result has a number, and can be read again from any number."
)


@cache
def make_document() -> dict[str, Any]:
    """The OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Placewire",
            "version": __version__,
            "summary": "A wire service for places",
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"key": []}],
        "tags": [
            {"name": "objects", "description": "What comes in"},
            {"name": "subscriptions", "description": "What is wished for"},
            {"name": "results", "description": "What goes out"},
            {"name": "queries", "description": "What is asked once"},
            {"name": "service", "description": "The service itself"},
        ],
        "paths": PATHS,
        "components": {
            "schemas": SCHEMAS,
            "responses": RESPONSES,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, made by `placewire keys add` or by `POST /v1/keys`."
                    " From the service's own machine none is needed unless it says so. Streams and"
                    " sockets take it as `?key=` too.",
                }
            },
        },
    }


@cache
def encode_document() -> bytes:
    """The OpenAPI document as JSON."""
    return msgspec.json.encode(make_document())
