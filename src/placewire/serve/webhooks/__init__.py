"""Delivery of results to webhooks, in order, with retries.

`dispatcher` decides which webhook is due and sends many at once, `sender` makes one signed POST,
`addresses` rejects URLs that lead to private networks, and `delivery_batcher` writes the outcomes
to the ledger, which holds all state that has to survive a restart.
"""
