"""The HTTP interface of the gateway: a Starlette application served by uvicorn.

`app` lists the routes. Their handlers are in `events` (objects and subscriptions), `results`
(streams and webhooks) and `service`; a handler reads the request, calls the gateway and returns
JSON. `requests` reads and checks request bodies and parameters, `connection` times out slow
clients, `streams` pushes results to clients, `live_map` serves the page of the live map,
`live_feed` feeds it, and `openapi` and
`schemas` describe the interface.
"""
