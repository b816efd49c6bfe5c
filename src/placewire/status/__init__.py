"""The status of a state directory, as JSON and as Prometheus metrics.

It is read from the last manifest without a lock, while a run may be writing.
"""
