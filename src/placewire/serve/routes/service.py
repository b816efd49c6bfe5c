"""The service itself: health, queries, dead letters, keys, and what a page shows live."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from placewire.model.errors import Unusable
from placewire.serve.access import Caller, make_key
from placewire.serve.bodies import read_flag, read_number, read_object
from placewire.serve.errors import Refused
from placewire.serve.gateway import Gateway
from placewire.serve.metrics import METRICS_TYPE, read_counts, render_metrics
from placewire.serve.openapi import encode_document
from placewire.serve.routes.calling import gateway_of, needs, reply, with_details
from placewire.serve.streams import ALIVE, ALIVE_S, HEADERS, STALLED_S, only_head, refuse_old, watch
from placewire.status.status import load_metrics, read_standing

MOST_LETTERS = 1_000
HEAVIEST = 10  # leaves that metrics tell of
LAST = (1 << 62) - 1


async def health(request: Request) -> Response:
    """How the service is; 503 when it cannot take anything."""
    gateway = gateway_of(request)
    facts = gateway.health()
    return reply(facts, 200 if facts["status"] == "ok" else 503)


async def openapi(_: Request) -> Response:
    """What can be called, for programs."""
    return Response(encode_document(), media_type="application/json")


async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    gateway = gateway_of(request)
    counted = await asyncio.to_thread(read_counts, gateway.ledger)
    loads = await asyncio.to_thread(read_loads, gateway)
    return Response(render_metrics(gateway, counted) + loads, media_type=METRICS_TYPE)


def read_loads(gateway: Gateway) -> str:
    """What workers and the heaviest leaves did, if that can be told; for threads."""
    if gateway.manifest is None:
        return ""
    try:
        return load_metrics(read_standing(gateway.state.root), HEAVIEST)
    except Unusable:  # a state that cannot be read is told by others
        return ""


@needs("subscribe")
async def query(request: Request, gateway: Gateway, _: Caller) -> Response:
    """A snapshot query, answered as of the last commit."""
    with_data, with_objects = read_flag(request, "with_data"), read_flag(request, "objects")
    asked = await read_object(request)
    answer = await asyncio.to_thread(gateway.answer, asked, with_data)
    return reply(await with_details(gateway, answer) if with_objects else answer)


@needs("admin")
async def dead_letters(request: Request, gateway: Gateway, _: Caller) -> Response:
    """Events that the pipeline refused."""
    limit = read_number(request, "limit", 100, 1, MOST_LETTERS)
    after = read_number(request, "after", -1, -1, LAST)
    found = await asyncio.to_thread(gateway.ledger.dead_letters, after, limit)
    return reply({"dead_letters": found, "next": found[-1]["seq"] if found else after})


@needs("admin")
async def keys(_: Request, gateway: Gateway, caller: Caller) -> Response:
    """The keys that there are, without themselves."""
    found = await asyncio.to_thread(gateway.ledger.all_keys)
    return reply({"keys": [{"name": key.name, "roles": key.roles} for key in found]})


@needs("admin")
async def add_key(request: Request, gateway: Gateway, _: Caller) -> Response:
    """A new key, shown this once."""
    given = await read_object(request)
    name, roles = given.get("name"), given.get("roles")
    if not isinstance(name, str) or not isinstance(roles, list) or len(given) != 2:
        raise Refused(422, "body: must be {'name': TEXT, 'roles': [ROLE, ...]}")
    if not all(isinstance(role, str) for role in roles):
        raise Refused(422, "roles: must be names of roles")
    secret, key = make_key(name, tuple(roles))
    if not await asyncio.to_thread(gateway.ledger.add_key, key):
        raise Refused(409, f"key {name!r}: is there already")
    gateway.access.forget()
    return reply({"name": key.name, "roles": key.roles, "key": secret}, 201)


@needs("admin")
async def end_key(request: Request, gateway: Gateway, _: Caller) -> Response:
    """End a key at once; its subscriptions stay, and an admin may end them."""
    name = unquote(request.path_params["name"])
    if not await asyncio.to_thread(gateway.ledger.end_key, name):
        raise Refused(404, f"key {name[:80]!r}: is not known")
    gateway.access.forget()
    gateway.end_caller(name)
    return reply({"name": name})


class LiveStream:
    """What a page shows, as server-sent events."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self.gateway = gateway
        self.caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        gone = asyncio.Event()
        watcher = asyncio.create_task(watch(receive, gone.set))
        page = self.gateway.live.join(self.caller.name, gone.set)
        try:
            while not gone.is_set():
                try:
                    async with asyncio.timeout(ALIVE_S):
                        text = await page.get()
                except TimeoutError:
                    text = ALIVE
                async with asyncio.timeout(STALLED_S):
                    await send({"type": "http.response.body", "body": text, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (TimeoutError, OSError):
            pass
        finally:
            self.gateway.live.leave(page)
            watcher.cancel()


@needs("subscribe")
async def live(request: Request, gateway: Gateway, caller: Caller) -> Any:
    """A sample of objects, figures, plan changes."""
    refuse_old(request)
    if request.method == "HEAD":
        return only_head()
    return LiveStream(gateway, caller)
