"""A client of the service, for Python programs and the command line.

`client` has the methods and sends lines in chunks under idempotency keys; `calls` makes HTTP
requests with retries, and follows and resumes result streams. Nothing here needs the web framework.
"""

from __future__ import annotations

from placewire.serve.client.calls import Declined
from placewire.serve.client.client import Client, Sent, connect

__all__ = ["Client", "Declined", "Sent", "connect"]
