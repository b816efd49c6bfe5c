"""The service: what a person or an application uses, on top of the pipeline.

Two processes under one supervisor. The *gateway* takes requests, writes what it accepts to the
journal before it replies, and hands results out; the *pipeline* follows the journal and commits
batches. They share nothing but the state directory: the journal one way, manifests the other.

`admission` and `committing` bring events in, `ledger` remembers who owns what and every result
by number, `keeper` brings results from the outbox to it, `hub` and `streams` to those who
listen, `webhooks` to addresses by `sending`, and `addresses` says to which; `app` has the routes,
`access` who may do what.
`client` is the other side, for Python and for commands; `books` and `unserved` do without a server.
"""
