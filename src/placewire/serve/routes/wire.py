"""The wire behind the service: how the pipeline stands, its plan, and why a pair matches."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from placewire.explain.context import NotKept
from placewire.explain.explain import explain as explain_pair
from placewire.explain.history import History
from placewire.model.errors import Unusable
from placewire.plans.boolean.methods import METHODS
from placewire.serve.access import Caller
from placewire.serve.bodies import read_number, read_object
from placewire.serve.errors import Refused
from placewire.serve.gateway import Gateway
from placewire.serve.routes.calling import needs, reply
from placewire.status.plan_facts import MOST_LEAVES, plan_facts
from placewire.status.status import Standing, read_standing, to_facts
from placewire.storage.notes import MOST_WORKERS, ask_plan, read_waiting

MOST_PAIR_BYTES = 1 << 18


def stand(gateway: Gateway) -> Standing | None:
    """How the state stands, if anything is committed; for threads."""
    if gateway.manifest is None:
        return None
    try:
        return read_standing(gateway.state.root)
    except Unusable as error:
        raise Refused(503, str(error)) from None


@needs("admin")
async def status(request: Request, gateway: Gateway, _: Caller) -> Response:
    """What `placewire status --json` tells, and the service's own figures."""
    leaves = read_number(request, "leaves", 10, 0, MOST_LEAVES)
    standing = await asyncio.to_thread(stand, gateway)
    facts: dict[str, Any] = to_facts(standing, leaves) if standing is not None else {"batch": -1}
    return reply(facts | {"service": gateway.figures()})


@needs("subscribe")
async def plan(_: Request, gateway: Gateway, caller: Caller) -> Response:
    """The boolean plan in force: its leaves, whose they are, and their share of the load."""
    standing = await asyncio.to_thread(stand, gateway)
    if standing is None:
        asked = await asyncio.to_thread(read_waiting, gateway.state, {})
        told = {"name": "shared", "version": 0, "workers": 1, "leaves": [], "loads": []}
        return reply(told if asked is None else told | {"asked": asked.wish()})
    told = await asyncio.to_thread(plan_facts, gateway.state, standing)
    return reply(told | {"changes": list(gateway.live.changes)})


@needs("admin")
async def ask(request: Request, gateway: Gateway, _: Caller) -> Response:
    """Ask for another plan or other workers, by hand."""
    given = await read_object(request)
    if len(given) != 1 or not given.keys() <= {"plan", "workers"}:
        raise Refused(422, "body: must be {'plan': NAME} or {'workers': N}")
    name, workers = given.get("plan"), given.get("workers")
    if name is not None and name not in ("shared", *METHODS):
        known = ", ".join([*METHODS, "shared"])
        raise Refused(422, f"plan: must be one of {known}, got {str(name)[:60]!r}")
    if name is None and (type(workers) is not int or not 1 <= workers <= MOST_WORKERS):
        raise Refused(422, f"workers: must be 1..{MOST_WORKERS}, got {str(workers)[:60]}")
    await asyncio.to_thread(ask_plan, gateway.state, name or "", workers or 0)
    return reply({"asked": given}, 202)


@needs("subscribe")
async def explain(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Why an object does or does not match a subscription."""
    given = await read_object(request, MOST_PAIR_BYTES)
    if given.keys() != {"object", "subscription"}:
        raise Refused(422, "body: must be {'object': ..., 'subscription': ...}")
    thing, wish = given["object"], given["subscription"]
    if isinstance(thing, dict) and thing.keys() == {"seq"} and type(thing["seq"]) is int:
        thing = thing["seq"]
    if isinstance(wish, dict) and wish.keys() == {"id"}:
        wish = wish["id"]
    if not isinstance(thing, dict | int | str) or isinstance(thing, bool):
        raise Refused(422, "object: must be an object, its id, or {'seq': N}")
    if not isinstance(wish, dict | str):
        raise Refused(422, "subscription: must be a subscription or {'id': ID}")
    asked: dict[str, Any] | History
    if isinstance(wish, str):
        # As its owner wrote it: the state knows hashes of words, and maybe another owner's too.
        asked = await asyncio.to_thread(gateway.history_of, caller, wish)
    else:
        asked = wish
    committed = gateway.manifest is not None
    if not committed and not isinstance(thing, dict):
        raise Refused(503, "nothing is committed yet")
    state = gateway.state if committed else None
    try:
        told = await asyncio.to_thread(explain_pair, state, thing, asked, gateway.settings)
    except NotKept as error:
        raise Refused(404, str(error)) from None
    except Unusable as error:
        raise Refused(503, str(error)) from None
    return reply(told)
