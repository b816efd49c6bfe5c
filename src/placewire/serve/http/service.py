"""Handlers of the service: health, metrics, status, plan, explain, query, keys, live feed."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from placewire.explainer.context import NotRetained
from placewire.explainer.explain import explain as explain_pair
from placewire.explainer.subscription import SubscriptionHistory
from placewire.model.errors import Unusable
from placewire.plans.names import LEAF_METHODS
from placewire.serve import Refused
from placewire.serve.auth import Caller, make_key
from placewire.serve.gateway import Gateway
from placewire.serve.http.live_feed import LiveFeedResponse
from placewire.serve.http.openapi import encode_document
from placewire.serve.http.requests import (
    gateway_of,
    read_flag,
    read_number,
    read_object,
    reply,
    requires,
    with_details,
)
from placewire.serve.http.streams import head_response, require_http11
from placewire.serve.metrics import METRICS_TYPE, read_counts, render_metrics
from placewire.status import (
    MOST_LEAVES,
    StateStatus,
    describe_status,
    format_load_metrics,
    plan_facts,
    read_status,
)
from placewire.storage.runtime_files import MOST_WORKERS, read_pending_request, request_plan

MAX_DEAD_LETTERS = 1_000
HEAVIEST = 10  # leaves in the metrics
LAST = (1 << 62) - 1


async def health(request: Request) -> Response:
    """Health of the service; 503 if it cannot accept events."""
    gateway = gateway_of(request)
    facts = gateway.health()
    return reply(facts, 200 if facts["status"] == "ok" else 503)


async def openapi(_: Request) -> Response:
    return Response(encode_document(), media_type="application/json")


async def metrics(request: Request) -> Response:
    gateway = gateway_of(request)
    counted = await asyncio.to_thread(read_counts, gateway.ledger)
    loads = await asyncio.to_thread(read_loads, gateway)
    return Response(render_metrics(gateway, counted) + loads, media_type=METRICS_TYPE)


def read_loads(gateway: Gateway) -> str:
    """Load metrics of workers and the heaviest leaves, if available. Call it in a thread."""
    if gateway.manifest is None:
        return ""
    try:
        return format_load_metrics(read_status(gateway.state.root), HEAVIEST)
    except Unusable:  # reported elsewhere
        return ""


@requires("subscribe")
async def query(request: Request, gateway: Gateway, _: Caller) -> Response:
    """Answer a snapshot query at the last commit."""
    with_data, with_objects = read_flag(request, "with_data"), read_flag(request, "objects")
    asked = await read_object(request)
    answer = await asyncio.to_thread(gateway.queries.answer, asked, with_data)
    return reply(await with_details(gateway, answer) if with_objects else answer)


@requires("admin")
async def dead_letters(request: Request, gateway: Gateway, _: Caller) -> Response:
    """Events that the pipeline rejected."""
    limit = read_number(request, "limit", 100, 1, MAX_DEAD_LETTERS)
    after = read_number(request, "after", -1, -1, LAST)
    found = await asyncio.to_thread(gateway.ledger.dead_letters, after, limit)
    return reply({"dead_letters": found, "next": found[-1]["seq"] if found else after})


@requires("admin")
async def keys(_: Request, gateway: Gateway, caller: Caller) -> Response:
    """Names and roles of all keys."""
    found = await asyncio.to_thread(gateway.ledger.all_keys)
    return reply({"keys": [{"name": key.name, "roles": key.roles} for key in found]})


@requires("admin")
async def add_key(request: Request, gateway: Gateway, _: Caller) -> Response:
    """Create a key; the reply shows it once."""
    given = await read_object(request)
    name, roles = given.get("name"), given.get("roles")
    if not isinstance(name, str) or not isinstance(roles, list) or len(given) != 2:
        raise Refused(422, "body: must be {'name': TEXT, 'roles': [ROLE, ...]}")
    if not all(isinstance(role, str) for role in roles):
        raise Refused(422, "roles: must be names of roles")
    secret, key = make_key(name, tuple(roles))
    if not await asyncio.to_thread(gateway.ledger.add_key, key):
        raise Refused(409, f"key {name!r}: already exists")
    gateway.authenticator.invalidate()
    return reply({"name": key.name, "roles": key.roles, "key": secret}, 201)


@requires("admin")
async def end_key(request: Request, gateway: Gateway, _: Caller) -> Response:
    """Delete a key at once; its subscriptions stay, and an admin can end them."""
    name = unquote(request.path_params["name"])
    if not await asyncio.to_thread(gateway.ledger.end_key, name):
        raise Refused(404, f"key {name[:80]!r}: is not known")
    gateway.authenticator.invalidate()
    gateway.close_streams(name)
    return reply({"name": name})


@requires("subscribe")
async def live(request: Request, gateway: Gateway, caller: Caller) -> Any:
    """The live feed: sampled objects, counters, plan changes."""
    require_http11(request)
    if request.method == "HEAD":
        return head_response()
    return LiveFeedResponse(gateway, caller)


MAX_PAIR_BYTES = 1 << 18


def read_state(gateway: Gateway) -> StateStatus | None:
    """Status of the state directory, if anything is committed. Call it in a thread."""
    if gateway.manifest is None:
        return None
    try:
        return read_status(gateway.state.root)
    except Unusable as error:
        raise Refused(503, str(error)) from None


@requires("admin")
async def status(request: Request, gateway: Gateway, _: Caller) -> Response:
    """What `placewire status --json` prints, and the service's counters."""
    leaves = read_number(request, "leaves", 10, 0, MOST_LEAVES)
    found = await asyncio.to_thread(read_state, gateway)
    facts: dict[str, Any] = describe_status(found, leaves) if found is not None else {"batch": -1}
    return reply(facts | {"service": gateway.figures()})


@requires("subscribe")
async def plan(_: Request, gateway: Gateway, caller: Caller) -> Response:
    """The leaf plan in use: its leaves, their workers and their share of the load."""
    found = await asyncio.to_thread(read_state, gateway)
    if found is None:
        asked = await asyncio.to_thread(read_pending_request, gateway.state, None)
        answer = {"name": "shared", "version": 0, "workers": 1, "leaves": [], "loads": []}
        return reply(answer if asked is None else answer | {"asked": asked.wish()})
    answer = await asyncio.to_thread(plan_facts, gateway.state, found)
    return reply(answer | {"changes": list(gateway.live_feed.changes)})


@requires("admin")
async def change_plan(request: Request, gateway: Gateway, _: Caller) -> Response:
    """Request another plan or another number of workers."""
    given = await read_object(request)
    if len(given) != 1 or not given.keys() <= {"plan", "workers"}:
        raise Refused(422, "body: must be {'plan': NAME} or {'workers': N}")
    name, workers = given.get("plan"), given.get("workers")
    if name is not None and name not in ("shared", *LEAF_METHODS):
        known = ", ".join([*LEAF_METHODS, "shared"])
        raise Refused(422, f"plan: must be one of {known}, got {str(name)[:60]!r}")
    if name is None and (type(workers) is not int or not 1 <= workers <= MOST_WORKERS):
        raise Refused(422, f"workers: must be 1..{MOST_WORKERS}, got {str(workers)[:60]}")
    await asyncio.to_thread(request_plan, gateway.state, name or "", workers or 0)
    return reply({"asked": given}, 202)


@requires("subscribe")
async def explain(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Why an object does or does not match a subscription."""
    given = await read_object(request, MAX_PAIR_BYTES)
    if given.keys() != {"object", "subscription"}:
        raise Refused(422, "body: must be {'object': ..., 'subscription': ...}")
    published, subscription = given["object"], given["subscription"]
    if (
        isinstance(published, dict)
        and published.keys() == {"seq"}
        and type(published["seq"]) is int
    ):
        published = published["seq"]
    if isinstance(subscription, dict) and subscription.keys() == {"id"}:
        subscription = subscription["id"]
    if not isinstance(published, dict | int | str) or isinstance(published, bool):
        raise Refused(422, "object: must be an object, its id, or {'seq': N}")
    if not isinstance(subscription, dict | str):
        raise Refused(422, "subscription: must be a subscription or {'id': ID}")
    asked: dict[str, Any] | SubscriptionHistory
    if isinstance(subscription, str):
        # As its owner wrote it: the state has only hashed terms, and maybe those of another owner.
        asked = await asyncio.to_thread(gateway.history_of, caller, subscription)
    else:
        asked = subscription
    committed = gateway.manifest is not None
    if not committed and not isinstance(published, dict):
        raise Refused(503, "nothing is committed yet")
    state = gateway.state if committed else None
    try:
        answer = await asyncio.to_thread(explain_pair, state, published, asked, gateway.settings)
    except NotRetained as error:
        raise Refused(404, str(error)) from None
    except Unusable as error:
        raise Refused(503, str(error)) from None
    return reply(answer)
