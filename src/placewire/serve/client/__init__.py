"""A client of the service, for Python and for the command line.

`calls` makes requests and tries again what may be tried again, `sending` sends lines in chunks that
are never taken twice, `following` follows results and takes up a lost stream where it was; `client`
puts them together. Nothing here needs the web framework.
"""

from __future__ import annotations

from placewire.serve.client.calls import Declined
from placewire.serve.client.client import Client, connect
from placewire.serve.client.upload import Sent

__all__ = ["Client", "Declined", "Sent", "connect"]
