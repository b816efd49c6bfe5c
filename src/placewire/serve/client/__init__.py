"""A client of the service, for Python programs and the command line.

`client` has the methods, `calls` makes HTTP requests with retries, `upload` sends lines in chunks
under idempotency keys, and `follower` follows result streams and resumes them. Nothing here needs
the web framework.
"""

from __future__ import annotations

from placewire.serve.client.calls import Declined
from placewire.serve.client.client import Client, connect
from placewire.serve.client.upload import Sent

__all__ = ["Client", "Declined", "Sent", "connect"]
