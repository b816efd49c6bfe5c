"""Delivery of a subscription's results to a webhook: wished for, shown, ended, tried again."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from placewire.model.errors import InvalidEvent
from placewire.model.times import format_duration, format_timestamp, parse_duration
from placewire.serve.auth import Caller
from placewire.serve.errors import Refused
from placewire.serve.gateway import Gateway
from placewire.serve.http.requests import name_of, needs, read_number, read_object, reply
from placewire.serve.ledger import Held
from placewire.serve.ledger.rows import Webhook, Wish, dead_facts
from placewire.serve.webhooks.addresses import read_url

LAST = (1 << 62) - 1
MOST_DEAD = 1_000
LEAST_US, MOST_US = 100_000, 7 * 86_400_000_000  # of throttles and digests
SECRET_SIZES = range(16, 257)


@needs("subscribe")
async def put(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Have results sent to a webhook from now on, or otherwise than before."""
    name = name_of(request)
    given = await read_object(request)
    held = await asyncio.to_thread(gateway.find_own, caller, name)
    wish = read_wish(given, held, gateway.options.allow_private)
    token, secret = secrets.token_hex(8), f"pws_{secrets.token_urlsafe(32)}"
    deliveries = gateway.ledger.deliveries
    made = await asyncio.to_thread(deliveries.put, held.account, wish, token, secret)
    if made is None:
        raise Refused(404, f"subscription {name!r}: has ended")
    gateway.webhooks.wake(held.account)
    webhook = await find_webhook(gateway, held)
    told = describe_webhook(webhook, held)
    if made and wish.secret is None:
        told["webhook"]["secret"] = webhook.secret
    return reply(told, 201 if made else 200)


@needs("subscribe")
async def get(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """A webhook and what was counted; never its secret."""
    held = await asyncio.to_thread(gateway.find_own, caller, name_of(request))
    return reply(describe_webhook(await find_webhook(gateway, held), held))


@needs("subscribe")
async def end(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Send nothing more; results stay in the ledger."""
    held = await asyncio.to_thread(gateway.find_own, caller, name_of(request))
    if not await asyncio.to_thread(gateway.ledger.deliveries.end, held.account):
        raise no_webhook(held.id)
    return reply({"id": held.id})


@needs("subscribe")
async def dead(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Deliveries that were given up."""
    limit = read_number(request, "limit", 100, 1, MOST_DEAD)
    after = read_number(request, "after", 0, 0, LAST)
    held = await asyncio.to_thread(gateway.find_own, caller, name_of(request))
    await find_webhook(gateway, held)
    found = await asyncio.to_thread(gateway.ledger.deliveries.dead, held.account, after, limit)
    shown = [dead_facts(one) | {"at": format_timestamp(one.at_us)} for one in found]
    return reply({"dead": shown, "next": found[-1].first_number if found else after})


@needs("subscribe")
async def retry(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Try each of them once more."""
    held = await asyncio.to_thread(gateway.find_own, caller, name_of(request))
    webhook = await find_webhook(gateway, held)
    if webhook.ended:
        raise Refused(409, f"webhook of {held.id!r}: has ended: {webhook.ended}")
    count = await asyncio.to_thread(gateway.ledger.deliveries.try_again, held.account)
    gateway.webhooks.wake(held.account)
    return reply({"retried": count}, 202)


async def find_webhook(gateway: Gateway, held: Held) -> Webhook:
    webhook = await asyncio.to_thread(gateway.ledger.deliveries.find, held.account)
    if webhook is None:
        raise no_webhook(held.id)
    return webhook


def no_webhook(name: str) -> Refused:
    return Refused(404, f"subscription {name!r}: has no webhook")


def describe_webhook(webhook: Webhook, held: Held) -> dict[str, Any]:
    """A webhook as it is shown: where, how, and where every result went."""
    waits = webhook.next_us * 1_000 > time.time_ns() and not webhook.ended
    return {
        "webhook": {"url": webhook.url},
        "throttle": format_duration(webhook.throttle_us) if webhook.throttle_us else None,
        "digest": format_duration(webhook.digest_us) if webhook.digest_us else None,
        "status": "ended" if webhook.ended else "retrying" if webhook.attempts else "live",
        "number": webhook.number,
        "delivered": webhook.delivered,
        "pending": max(0, held.numbers - webhook.number),
        "dropped": webhook.dropped,
        "failed": webhook.failed,
        "attempts": webhook.attempts,
        "next_attempt": format_timestamp(webhook.next_us) if waits else None,
        "error": webhook.error or None,
    }


def read_wish(given: dict[str, Any], held: Held, allow_private: bool) -> Wish:
    """What a body asks for; raises Refused."""
    known = ("webhook", "throttle", "digest", "after")
    refuse_unknown("body", given, known)
    webhook = given.get("webhook")
    if not isinstance(webhook, dict):
        raise Refused(422, "webhook: must be an object with 'url' and perhaps 'secret'")
    refuse_unknown("webhook", webhook, ("url", "secret"))
    if given.get("throttle") is not None and given.get("digest") is not None:
        raise Refused(422, "throttle, digest: must not both be given")
    return Wish(
        read_url(webhook.get("url"), allow_private),
        read_secret(webhook.get("secret")),
        read_span("throttle", given.get("throttle")),
        read_span("digest", given.get("digest")),
        read_after(given.get("after"), held),
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


def read_span(name: str, given: object) -> int:
    if given is None:
        return 0
    try:
        if not isinstance(given, str):
            raise InvalidEvent("a duration must be a text")
        span_us = parse_duration(given)
    except InvalidEvent as error:
        raise Refused(422, f"{name}: {error}") from None
    if not LEAST_US <= span_us <= MOST_US:
        raise Refused(422, f"{name}: must be PT0.1S to P7D, got {given[:40]}")
    return span_us


def read_after(given: object, held: Held) -> int | None:
    """From which number on; nothing: all that is kept, or as before."""
    if given is None:
        return None
    if given == "latest":
        return held.numbers
    if type(given) is not int or not 0 <= given <= held.numbers:
        raise Refused(422, f"after: must be 0..{held.numbers} or 'latest', got {str(given)[:40]}")
    return given
