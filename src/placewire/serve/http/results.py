"""Handlers of results: read or follow them, and deliver them to webhooks."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Any

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from placewire.model.errors import InvalidEvent
from placewire.model.times import format_duration, format_timestamp, parse_duration
from placewire.serve import Refused, Unavailable
from placewire.serve.auth import Caller, check_role
from placewire.serve.gateway import Gateway
from placewire.serve.http.requests import (
    find_subscription,
    gateway_of,
    read_flag,
    read_number,
    read_object,
    reply,
    requires,
    stream_key,
    subscription_id,
)
from placewire.serve.http.streams import (
    SEND_TIMEOUT_S,
    EventStreamResponse,
    Listener,
    ResultStream,
    encode_result,
    head_response,
    make_encoder,
    require_http11,
    wait_for_disconnect,
)
from placewire.serve.ledger import SubscriptionRow
from placewire.serve.ledger.rows import WebhookRow, WebhookSettings, describe_dead
from placewire.serve.webhooks.sender import read_url

MAX_RESULTS = 1_000


@requires("subscribe")
async def read(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Results of a subscription after a number."""
    subscription = await find_subscription(request, gateway, caller)
    limit = read_number(request, "limit", 100, 1, MAX_RESULTS)
    after = read_number(request, "after", 0, 0, subscription.numbers)
    entries = await asyncio.to_thread(gateway.ledger.results_of, subscription.account, after, limit)
    text = b",".join([encode_result(entry) for entry in entries])
    following = entries[-1].number if entries else after
    body = b'{"results":[' + text + b'],"next":%d}' % following
    return Response(body, media_type="application/json")


async def open_stream(connection: HTTPConnection, gateway: Gateway, caller: Caller) -> ResultStream:
    """The stream that a client asks for, at its start position; raises Refused."""
    one = "id" in connection.path_params
    if one:
        subscription = await find_subscription(connection, gateway, caller)
        last = subscription.numbers
        listener = Listener(subscription.id, subscription.owner, caller.name)
    else:
        last = await asyncio.to_thread(lambda: gateway.ledger.position)
        listener = Listener(None, caller.scope, caller.name)
    what, given = "last-event-id", connection.headers.get("last-event-id", "")
    if not given:
        what, given = "after", connection.query_params.get("after", "")
    if given == "latest":
        return ResultStream(gateway, listener, last)
    number = given or "0"
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise Refused(422, f"{what}: must be a number or 'latest', got {given[:40]!r}")
    if int(number) > last:
        # A later cursor would silently skip the results up to it.
        raise Refused(422, f"{what}: must be 0..{last} or 'latest', got {given}")
    return ResultStream(gateway, listener, int(number))


@requires("subscribe")
async def events(request: Request, gateway: Gateway, caller: Caller) -> Any:
    """Results as server-sent events."""
    with_objects = read_flag(request, "objects")
    require_http11(request)
    stream = await open_stream(request, gateway, caller)
    if request.method == "HEAD":
        return head_response()
    return EventStreamResponse(stream, make_encoder(gateway, with_objects))


async def socket(websocket: WebSocket) -> None:
    """Results over a WebSocket, one text message each."""
    try:
        gateway = gateway_of(websocket)
        caller = await gateway.authenticator.identify(websocket.headers, stream_key(websocket))
        check_role(caller, "subscribe")
        stream = await open_stream(websocket, gateway, caller)
    except (Refused, Unavailable) as error:
        if isinstance(error, Unavailable):
            error = Refused(503, str(error))
        body = msgspec.json.encode({"error": error.why})
        await websocket.send_denial_response(
            Response(body, error.status, error.headers, media_type="application/json")
        )
        return
    await websocket.accept()
    watcher = asyncio.create_task(wait_for_disconnect(websocket.receive, stream.close))
    try:
        async for entries in stream.batches():
            for entry in entries:
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await websocket.send_text(encode_result(entry).decode())
    except (TimeoutError, OSError, RuntimeError, Unavailable):
        pass  # the client or the ledger is gone; the client can reconnect
    finally:
        watcher.cancel()


LAST = (1 << 62) - 1
MAX_DEAD = 1_000
MIN_INTERVAL_US, MAX_INTERVAL_US = 100_000, 7 * 86_400_000_000  # of throttles and digests
SECRET_SIZES = range(16, 257)


@requires("subscribe")
async def put_webhook(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Create or change the webhook of a subscription."""
    name = subscription_id(request)
    given = await read_object(request)
    subscription = await asyncio.to_thread(gateway.find_subscription, caller, name)
    settings = read_settings_body(given, subscription, gateway.options.allow_private)
    token, secret = secrets.token_hex(8), f"pws_{secrets.token_urlsafe(32)}"
    deliveries = gateway.ledger.deliveries
    made = await asyncio.to_thread(deliveries.put, subscription.account, settings, token, secret)
    if made is None:
        raise Refused(404, f"subscription {name!r}: has ended")
    gateway.webhooks.refresh(subscription.account)
    webhook = await find_webhook(gateway, subscription)
    answer = describe_webhook(webhook, subscription)
    if made and settings.secret is None:
        answer["webhook"]["secret"] = webhook.secret
    return reply(answer, 201 if made else 200)


@requires("subscribe")
async def get_webhook(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """The webhook and its counters, without its secret."""
    subscription = await find_subscription(request, gateway, caller)
    return reply(describe_webhook(await find_webhook(gateway, subscription), subscription))


@requires("subscribe")
async def end_webhook(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """End the webhook; results stay in the ledger."""
    subscription = await find_subscription(request, gateway, caller)
    if not await asyncio.to_thread(gateway.ledger.deliveries.end, subscription.account):
        raise no_webhook(subscription.id)
    return reply({"id": subscription.id})


@requires("subscribe")
async def dead_deliveries(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Dead deliveries of the webhook."""
    limit = read_number(request, "limit", 100, 1, MAX_DEAD)
    after = read_number(request, "after", 0, 0, LAST)
    subscription = await find_subscription(request, gateway, caller)
    await find_webhook(gateway, subscription)
    found = await asyncio.to_thread(
        gateway.ledger.deliveries.dead, subscription.account, after, limit
    )
    shown = [describe_dead(one) | {"at": format_timestamp(one.at_us)} for one in found]
    return reply({"dead": shown, "next": found[-1].first_number if found else after})


@requires("subscribe")
async def retry_dead(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Retry each dead delivery once."""
    subscription = await find_subscription(request, gateway, caller)
    webhook = await find_webhook(gateway, subscription)
    if webhook.ended:
        raise Refused(409, f"webhook of {subscription.id!r}: has ended: {webhook.ended}")
    count = await asyncio.to_thread(gateway.ledger.deliveries.retry_dead, subscription.account)
    gateway.webhooks.refresh(subscription.account)
    return reply({"retried": count}, 202)


async def find_webhook(gateway: Gateway, subscription: SubscriptionRow) -> WebhookRow:
    webhook = await asyncio.to_thread(gateway.ledger.deliveries.find, subscription.account)
    if webhook is None:
        raise no_webhook(subscription.id)
    return webhook


def no_webhook(name: str) -> Refused:
    return Refused(404, f"subscription {name!r}: has no webhook")


def describe_webhook(webhook: WebhookRow, subscription: SubscriptionRow) -> dict[str, Any]:
    """A webhook as the API returns it."""
    waits = webhook.next_us * 1_000 > time.time_ns() and not webhook.ended
    return {
        "webhook": {"url": webhook.url},
        "throttle": format_duration(webhook.throttle_us) if webhook.throttle_us else None,
        "digest": format_duration(webhook.digest_us) if webhook.digest_us else None,
        "status": "ended" if webhook.ended else "retrying" if webhook.attempts else "live",
        "number": webhook.number,
        "delivered": webhook.delivered,
        "pending": max(0, subscription.numbers - webhook.number),
        "dropped": webhook.dropped,
        "failed": webhook.failed,
        "attempts": webhook.attempts,
        "next_attempt": format_timestamp(webhook.next_us) if waits else None,
        "error": webhook.error or None,
    }


def read_settings_body(
    given: dict[str, Any], subscription: SubscriptionRow, allow_private: bool
) -> WebhookSettings:
    """Validate webhook settings; raises Refused."""
    known = ("webhook", "throttle", "digest", "after")
    refuse_unknown("body", given, known)
    webhook = given.get("webhook")
    if not isinstance(webhook, dict):
        raise Refused(422, "webhook: must be an object with 'url' and perhaps 'secret'")
    refuse_unknown("webhook", webhook, ("url", "secret"))
    if given.get("throttle") is not None and given.get("digest") is not None:
        raise Refused(422, "throttle, digest: must not both be given")
    return WebhookSettings(
        read_url(webhook.get("url"), allow_private),
        read_secret(webhook.get("secret")),
        read_interval("throttle", given.get("throttle")),
        read_interval("digest", given.get("digest")),
        read_after(given.get("after"), subscription),
    )


def refuse_unknown(where: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise Refused(422, f"{where}: fields are {', '.join(known)}, got {unknown[0][:60]!r}")


def read_secret(given: object) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or len(given) not in SECRET_SIZES:
        raise Refused(422, "webhook.secret: must be a text of 16 to 256 characters")
    if not given.isascii() or not given.isprintable():
        raise Refused(422, "webhook.secret: must be printable ASCII")
    return given


def read_interval(name: str, given: object) -> int:
    if given is None:
        return 0
    try:
        if not isinstance(given, str):
            raise InvalidEvent("a duration must be a text")
        span_us = parse_duration(given)
    except InvalidEvent as error:
        raise Refused(422, f"{name}: {error}") from None
    if not MIN_INTERVAL_US <= span_us <= MAX_INTERVAL_US:
        raise Refused(422, f"{name}: must be PT0.1S to P7D, got {given[:40]}")
    return span_us


def read_after(given: object, subscription: SubscriptionRow) -> int | None:
    """The result number to start after; None: unchanged, or the first that is kept."""
    if given is None:
        return None
    if given == "latest":
        return subscription.numbers
    if type(given) is not int or not 0 <= given <= subscription.numbers:
        raise Refused(
            422, f"after: must be 0..{subscription.numbers} or 'latest', got {str(given)[:40]}"
        )
    return given
