"""Free TCP ports for servers that tests start."""

from __future__ import annotations

import errno
import os
import socket
from itertools import count

# Below the ports that Linux gives to outgoing connections: none of them takes a server's port
# while a test restarts it. Each process starts elsewhere and never returns a port twice.
FIRST, LAST = 15_000, 32_000
_ports = count(os.getpid() * 101)


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    while True:
        port = FIRST + next(_ports) % (LAST - FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port


def free_ports(number: int) -> list[int]:
    return [free_port() for _ in range(number)]
