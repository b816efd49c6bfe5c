"""Delivery of results to webhooks, in order, with retries.

`dispatcher` schedules deliveries, sends many at once and writes their outcomes to the ledger, which
holds all state that has to survive a restart. `sender` makes one signed POST and rejects URLs that
lead to private networks.
"""
