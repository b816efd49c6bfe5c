"""Request handlers.

`events` takes objects and subscriptions, `results` and `deliveries` return results, and `service`
has the rest.

A handler reads the request, calls the gateway, and returns JSON. The paths are in
`serve/http/app.py`.
"""
