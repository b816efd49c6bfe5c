"""Run Placewire as a service: HTTP in, results out over streams and webhooks.

Two processes run under one supervisor (`processes`). The *gateway* (`gateway`) accepts requests,
writes events to the journal before it replies, and delivers results. The *pipeline* (`pipeline`)
follows the journal and commits batches. They share only the state directory: the gateway writes the
journal, the pipeline writes manifests. Both resume from the last commit after a crash.

Events enter through `intake` (validation) and `group_commit` (journal writes). The `ledger` package
records who owns each subscription and numbers every result. `http` has the routes and result
streams, `webhooks` the deliveries, `auth` keys, roles and rate limits, `metrics` the Prometheus
metrics. `queries` answers snapshot queries.

`client` is the Python client. `offline` does the same work on a state directory without a server.
"""
