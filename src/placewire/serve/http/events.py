"""Handlers of events: publish and read objects; create, end, list and read subscriptions."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from placewire.model.kinds import kind_named
from placewire.serve import Refused
from placewire.serve.auth import Caller
from placewire.serve.gateway import Gateway
from placewire.serve.group_commit import read_change
from placewire.serve.http.requests import (
    JSON,
    MAX_BULK_BYTES,
    MAX_EVENT_BYTES,
    accept_bulk,
    find_subscription,
    media_type,
    read_body,
    read_flag,
    read_idempotency_key,
    read_number,
    reply,
    requires,
    subscription_id,
    with_details,
)
from placewire.serve.http.results import describe_webhook
from placewire.serve.intake import (
    JournalLine,
    complete_event,
    decode_object,
    read_bulk,
    read_object,
    read_subscription,
)
from placewire.serve.ledger import SubscriptionChange, SubscriptionRow
from placewire.serve.ledger.rows import WebhookRow, empty_result

INLINE_BYTES = 1 << 16  # larger bodies are read in a thread
MAX_LISTED = 1_000


@requires("publish")
async def publish(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Publish one object, or many from JSON lines."""
    if media_type(request) == JSON:
        body = await read_body(request, MAX_EVENT_BYTES)
        line = read_object(gateway.admission, decode_object(body))
        written = await gateway.accept(
            caller, [line], idempotency_key=read_idempotency_key(request, body)
        )
        gateway.live_feed.add_objects(written["seq"], [line])
        return reply({"seq": written["seq"]}, 202)
    body = await read_body(request, MAX_BULK_BYTES)
    if len(body) > INLINE_BYTES:
        bulk = await asyncio.to_thread(read_bulk, gateway.admission, body, "object")
    else:
        bulk = read_bulk(gateway.admission, body, "object")
    return await accept_bulk(request, gateway, caller, body, bulk, 202)


@requires("subscribe")
async def read_back(request: Request, gateway: Gateway, _: Caller) -> Response:
    """The object at an event."""
    seq = request.path_params["seq"]
    found = await asyncio.to_thread(gateway.queries.object_at, seq) if seq < 1 << 62 else None
    if found is None:
        raise Refused(404, f"event {seq}: is not an object, or is no longer retained")
    return reply({"seq": seq, "object": found})


def describe(
    gateway: Gateway, subscription: SubscriptionRow, webhook: WebhookRow | None
) -> dict[str, Any]:
    """A subscription as the API returns it."""
    delivery = describe_webhook(webhook, subscription) if webhook is not None else None
    return subscription.shown(gateway.admission.now_us) | {"delivery": delivery}


async def write_subscription(
    request: Request, gateway: Gateway, caller: Caller, **fixed: str
) -> Response:
    """Create or replace a subscription."""
    body = await read_body(request, MAX_EVENT_BYTES)
    admitted = read_subscription(gateway.admission, decode_object(body), **fixed)
    change = read_change(admitted.line)
    assert change is not None
    line = JournalLine(admitted.line, admitted.ts_us)
    written = await gateway.accept(caller, [line], [change], read_idempotency_key(request, body))
    replaced = bool(written.get("replaced"))
    answer = {"id": written["id"], "seq": written["seq"], "replaced": replaced}
    return reply(answer, 200 if replaced else 201)


@requires("subscribe")
async def create(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Create one subscription, or many from JSON lines."""
    if media_type(request) == JSON:
        return await write_subscription(request, gateway, caller)
    body = await read_body(request, MAX_BULK_BYTES)
    bulk = await asyncio.to_thread(read_bulk, gateway.second_admission(), body, "subscribe")
    return await accept_bulk(request, gateway, caller, body, bulk, 201)


@requires("subscribe")
async def put(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Create or replace the subscription with the id of the path."""
    if media_type(request) != JSON:
        raise Refused(415, f"content-type: must be {JSON}")
    return await write_subscription(request, gateway, caller, id=subscription_id(request))


@requires("subscribe")
async def end(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """End a subscription; an admin may end those of other owners."""
    name = subscription_id(request)
    idempotency_key = read_idempotency_key(request, b"")
    await asyncio.to_thread(gateway.find_subscription, caller, name)
    admitted = gateway.admission.admit(complete_event({}, "unsubscribe", id=name))
    line = JournalLine(admitted.line, admitted.ts_us)
    written = await gateway.accept(
        caller, [line], [SubscriptionChange(0, name, "", ends=True)], idempotency_key
    )
    return reply({"id": name, "seq": written["seq"]})


@requires("subscribe")
async def list_all(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """List the caller's subscriptions, by id."""
    limit = read_number(request, "limit", 100, 1, MAX_LISTED)
    after = request.query_params.get("after", "").replace("\x00", "")
    rows = await asyncio.to_thread(
        gateway.ledger.list_subscriptions, caller.scope, after, limit + 1
    )
    names = [row.id for row in rows[:limit]]
    webhooks = await asyncio.to_thread(gateway.ledger.deliveries.find_all, names)
    shown = [describe(gateway, row, webhooks.get(row.account)) for row in rows[:limit]]
    following = rows[limit - 1].id if len(rows) > limit else None
    return reply({"subscriptions": shown, "next": following})


@requires("subscribe")
async def get(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """One subscription."""
    subscription = await find_subscription(request, gateway, caller)
    webhook = await asyncio.to_thread(gateway.ledger.deliveries.find, subscription.account)
    return reply(describe(gateway, subscription, webhook))


@requires("subscribe")
async def standing(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """The current result of a ranked subscription: its list, or its last report."""
    with_objects = read_flag(request, "objects")
    subscription = await find_subscription(request, gateway, caller)
    if not kind_named(subscription.kind).form.lists:
        name, kind = subscription.id, subscription.kind
        raise Refused(404, f"subscription {name!r}: a {kind} one has no standing, see results")
    current = subscription.standing
    answer = msgspec.json.decode(current) if current else empty_result(subscription.kind)
    return reply(await with_details(gateway, answer) if with_objects else answer)
