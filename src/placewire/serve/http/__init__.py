"""The HTTP interface of the gateway: a Starlette application served by uvicorn.

`app` lists the routes, and `routes/` has their handlers by resource. `requests` reads and checks
request bodies and parameters, `connection` times out slow clients, `streams` pushes results to
clients, `live_map` serves the page of the live map, `live_feed` feeds it, and `openapi` and
`schemas` describe the interface.
"""
