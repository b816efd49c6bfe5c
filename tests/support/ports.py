"""Free TCP ports for servers that tests start."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """Return distinct ports of the loopback interface that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def free_port() -> int:
    return free_ports(1)[0]
