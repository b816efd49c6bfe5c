"""Request handlers, one module per resource: objects, subscriptions, results, deliveries, service.

A handler reads the request, calls the gateway, and returns JSON. The paths are in
`serve/http/app.py`.
"""
