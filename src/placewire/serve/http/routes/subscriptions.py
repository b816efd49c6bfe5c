"""Subscriptions: made, replaced, ended, listed; each belongs to the key that made it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from placewire.serve.auth import Caller
from placewire.serve.errors import Refused
from placewire.serve.gateway import Gateway
from placewire.serve.group_commit import read_change
from placewire.serve.http.requests import (
    JSON,
    MOST_BULK_BYTES,
    MOST_BYTES,
    media_type,
    name_of,
    needs,
    read_body,
    read_flag,
    read_number,
    reply,
    with_details,
)
from placewire.serve.http.routes.deliveries import describe_webhook
from placewire.serve.http.routes.objects import repeat_of
from placewire.serve.intake import Incoming, complete, decode_object, read_bulk, read_subscription
from placewire.serve.kinds import KIND_FORMS, empty_result
from placewire.serve.ledger import Change, Held
from placewire.serve.ledger.rows import Webhook

MOST_LISTED = 1_000


def describe(gateway: Gateway, held: Held, webhook: Webhook | None) -> dict[str, Any]:
    """A subscription as it is shown."""
    delivery = describe_webhook(webhook, held) if webhook is not None else None
    return held.shown(gateway.admission.now_us) | {"delivery": delivery}


async def write_subscription(
    request: Request, gateway: Gateway, caller: Caller, **fixed: str
) -> Response:
    """Make or replace one."""
    body = await read_body(request, MOST_BYTES)
    admitted = read_subscription(gateway.admission, decode_object(body), **fixed)
    change = read_change(admitted.line)
    assert change is not None
    line = Incoming(admitted.line, admitted.ts_us)
    written = await gateway.accept(caller, [line], [change], repeat_of(request, body))
    replaced = bool(written.get("replaced"))
    told = {"id": written["id"], "seq": written["seq"], "replaced": replaced}
    return reply(told, 200 if replaced else 201)


@needs("subscribe")
async def create(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """One subscription, or with lines many."""
    if media_type(request) == JSON:
        return await write_subscription(request, gateway, caller)
    body = await read_body(request, MOST_BULK_BYTES)
    bulk = await asyncio.to_thread(read_bulk, gateway.spare_admission(), body, "subscribe")
    bulk = gateway.sift(caller, bulk)
    told = {"accepted": len(bulk.lines), "rejected": bulk.rejected, "errors": bulk.errors}
    if not bulk.lines:
        if not bulk.rejected:
            raise Refused(422, "body: must have lines, got none")
        return reply({"error": "no line was accepted", **told}, 422)
    written = await gateway.accept(caller, bulk.lines, bulk.changes, repeat_of(request, body))
    return reply({"first_seq": written["seq"], **told}, 201)


@needs("subscribe")
async def put(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Make or replace the subscription of this id."""
    if media_type(request) != JSON:
        raise Refused(415, f"content-type: must be {JSON}")
    return await write_subscription(request, gateway, caller, id=name_of(request))


@needs("subscribe")
async def end(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """End one; an admin may end anybody's."""
    name = name_of(request)
    repeat = repeat_of(request, b"")
    await asyncio.to_thread(gateway.find_own, caller, name)
    admitted = gateway.admission.admit(complete({}, "unsubscribe", id=name))
    line = Incoming(admitted.line, admitted.ts_us)
    written = await gateway.accept(caller, [line], [Change(0, name, "", ends=True)], repeat)
    return reply({"id": name, "seq": written["seq"]})


@needs("subscribe")
async def list_all(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """One's own, by id."""
    limit = read_number(request, "limit", 100, 1, MOST_LISTED)
    after = request.query_params.get("after", "").replace("\x00", "")
    held = await asyncio.to_thread(gateway.ledger.list_held, caller.scope, after, limit + 1)
    names = [one.id for one in held[:limit]]
    webhooks = await asyncio.to_thread(gateway.ledger.deliveries.find_all, names)
    shown = [describe(gateway, one, webhooks.get(one.account)) for one in held[:limit]]
    return reply(
        {"subscriptions": shown, "next": held[limit - 1].id if len(held) > limit else None}
    )


@needs("subscribe")
async def get(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """One of them."""
    held = await asyncio.to_thread(gateway.find_own, caller, name_of(request))
    webhook = await asyncio.to_thread(gateway.ledger.deliveries.find, held.account)
    return reply(describe(gateway, held, webhook))


@needs("subscribe")
async def standing(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Where a ranked subscription stands: its list, or its last report."""
    with_objects = read_flag(request, "objects")
    held = await asyncio.to_thread(gateway.find_own, caller, name_of(request))
    if not KIND_FORMS[held.kind].lists:
        why = f"subscription {held.id!r}: a {held.kind} one has no standing, see results"
        raise Refused(404, why)
    told = msgspec.json.decode(held.standing) if held.standing else empty_result(held.kind)
    return reply(await with_details(gateway, told) if with_objects else told)
