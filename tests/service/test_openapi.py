"""The OpenAPI document: as many routes as the application has, and answers as it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS
from starlette.routing import Mount, Route

from placewire.serve.http.app import ROUTES
from placewire.serve.http.openapi import make_document
from profiles import PROFILE, examples
from service import Service, serving

STREAMS = r"/(events|live)$"


@schemathesis.serializer("application/x-ndjson")
def write_lines(_: Any, value: Any) -> Any:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("openapi") / "state") as running:
        running.publish({"id": "first", "lon": 0, "lat": 0, "text": "something to ask about"})
        running.caught_up()
        yield running


schema = schemathesis.openapi.from_dict(make_document()).exclude(path_regex=STREAMS)
# 3,000 requests with one wrong value each: every xdist worker generates them, to collect tests.
schema.config.phases.coverage.enabled = PROFILE == "thorough"
CHOSEN = [
    check
    for check in CHECKS.get_all()
    if check.__name__ not in ("positive_data_acceptance", "ignored_auth")
]


def test_every_route_is_described_and_nothing_else() -> None:
    routes = {
        (re.sub(r":[a-z]+}", "}", route.path), method.lower())
        for route in ROUTES
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    described = {
        (path, method) for path, item in make_document()["paths"].items() for method in item
    }
    assert described == routes
    assert not any(isinstance(route, Mount) for route in ROUTES)


def test_the_document_is_served_and_refers_to_what_is_there(service: Service) -> None:
    served = service.http.get("/openapi.json")
    assert served.headers["content-type"] == "application/json"
    assert served.json() == make_document()
    for group, name in re.findall(r'"#/components/(\w+)/(\w+)"', served.text):
        assert name in make_document()["components"][group]


@schema.parametrize()
@settings(
    max_examples=examples(25),
    derandomize=True,  # a server in another process cannot replay a random example
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_described(case: schemathesis.Case, service: Service) -> None:
    case.call_and_validate(base_url=service.url, checks=CHOSEN, timeout=30)


def test_examples_are_accepted(service: Service) -> None:
    schemas = make_document()["components"]["schemas"]
    for example in schemas["Object"]["examples"]:
        assert service.http.post("/v1/objects", json=example).status_code == 202
    for example in schemas["Subscription"]["examples"]:
        assert service.http.post("/v1/subscriptions", json=example).status_code == 201
    for example in schemas["Query"]["examples"]:
        assert service.http.post("/v1/query", json=example).status_code == 200
    for example in schemas["Pair"]["examples"]:
        assert service.http.post("/v1/explain", json=example).json()["matches"] is not False
    for example in schemas["AskedPlan"]["examples"]:
        assert service.http.post("/v1/plan", json=example).status_code == 202
    for example in schemas["NewKey"]["examples"]:
        # It may be there already: requests were made from it above.
        assert service.http.post("/v1/keys", json=example).status_code in (201, 409)
